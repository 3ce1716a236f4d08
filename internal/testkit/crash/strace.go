package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// limit is how long one run may take; a run that hangs fails.
const limit = 30 * time.Second

// list traces a run to its end.
func list(r Run) ([]Call, error) {
	ended, err := r.trace()
	if err != nil {
		return nil, err
	}
	switch {
	case !ended.status.Exited() || ended.status.ExitStatus() != 0:
		return nil, fmt.Errorf("the traced run did not succeed: %v", ended)
	case len(ended.calls) == 0:
		return nil, fmt.Errorf("the traced run made no call on %q: %v", append(r.Under, r.State...), ended)
	}
	return ended.calls, nil
}

// kill makes a run and kills it at the call.
func kill(r Run, at Call) error {
	ended, err := r.trace("-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", at.Name, at.K+at.ahead))
	if err != nil {
		return err
	}
	if !ended.status.Signaled() || ended.status.Signal() != syscall.SIGKILL {
		return fmt.Errorf("the run was not killed at %s: %v", at, ended)
	}
	n := len(ended.calls)
	if n == 0 {
		return fmt.Errorf("the run was killed before any call on the state, not at %s: %v", at, ended)
	}
	if last := ended.calls[n-1]; last.Name != at.Name || last.K != at.K || last.index != at.index {
		return fmt.Errorf("the run was killed at its call %d, %s, not at call %d, %s: %v", last.index, last.Line, at.index, at.Line,
			ended)
	}
	return nil
}

// ending is how a run under strace ended.
type ending struct {
	status syscall.WaitStatus // strace's, which is the program's
	calls  []Call
	output string
}

func (e ending) String() string {
	how := fmt.Sprintf("status %d", e.status.ExitStatus())
	if e.status.Signaled() {
		how = e.status.Signal().String()
	}
	return fmt.Sprintf("%s after %d calls\n%s", how, len(e.calls), e.output)
}

// trace makes the run under strace with more arguments for it. An error means that it says nothing about the program.
func (r Run) trace(more ...string) (ending, error) {
	paths, err := r.matched()
	if err != nil {
		return ending{}, err
	}
	program, err := exec.LookPath(r.Path)
	if err != nil {
		return ending{}, err
	}
	log, err := os.CreateTemp("", "crash-strace-*")
	if err != nil {
		return ending{}, err
	}
	defer os.Remove(log.Name())
	defer log.Close()

	args := []string{"-f", "-y", "-q", "-e", "signal=none", "-o", log.Name()}
	for _, p := range paths {
		args = append(args, "-P", p)
	}
	if len(r.Under) > 0 {
		args = append(args, "-e", "trace=%file,%desc")
	}
	args = append(append(args, more...), "--", program)
	ended, err := r.wait(append(args, r.Args...))
	if err != nil {
		return ending{}, err
	}
	text, err := os.ReadFile(log.Name())
	if err != nil {
		return ending{}, err
	}
	if len(r.Under) > 0 {
		ended.calls, err = r.pick(string(text))
	} else {
		ended.calls, err = parse(string(text))
	}
	if err != nil {
		return ending{}, fmt.Errorf("%w\n%s", err, text)
	}
	return ended, nil
}

// wait runs strace and waits for it. What it started ends with it, also when it takes too long.
func (r Run) wait(args []string) (ending, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "strace", args...)
	cmd.Dir, cmd.Env = r.Dir, r.Env
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	// The runtime preempts by a signal, which may restart a call and so shift the count; the race detector sleeps for a
	// second at every exit.
	cmd.Env = append(slices.Clip(cmd.Env), MainThreadEnv+"=1", "GODEBUG=asyncpreemptoff=1", "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output

	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ending{}, fmt.Errorf("the run took longer than %s: %s", limit, &output)
	case err != nil && !errors.As(err, &exit):
		return ending{}, err
	}
	return ending{status: cmd.ProcessState.Sys().(syscall.WaitStatus), output: output.String()}, nil
}

// matched returns the paths to match: those of the state, and the same below the real path of their directory, for that
// is what a descriptor is open on.
func (r Run) matched() ([]string, error) {
	if len(r.Under) > 0 {
		return nil, nil
	}
	if len(r.State) == 0 {
		return nil, errors.New("no paths of the state are given")
	}
	var paths []string
	for _, p := range r.State {
		if !filepath.IsAbs(p) {
			return nil, fmt.Errorf("the path %q of the state is not absolute", p)
		}
		paths = append(paths, p)
		parent, err := filepath.EvalSymlinks(filepath.Dir(p))
		if err != nil {
			continue // the run may make it
		}
		if direct := filepath.Join(parent, filepath.Base(p)); direct != p {
			paths = append(paths, direct)
		}
	}
	return paths, nil
}

// traced is a line of the log: a thread, and the call that it entered.
var traced = regexp.MustCompile(`^(\d+) +(([a-z][a-z0-9_]*)\(.*)$`)

// parse reads strace's log. The end of a call that another thread's line interrupted is a line of its own, which does not
// look like a call, and neither does the end of a thread.
func parse(log string) ([]Call, error) {
	var calls []Call
	count := map[string]int{}
	thread := ""
	for line := range strings.Lines(log) {
		m := traced.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		if thread == "" {
			thread = m[1]
		}
		if thread != m[1] {
			if echoed(log, m) {
				continue
			}
			return nil, fmt.Errorf("calls on the state come from two threads, %s and %s", thread, m[1])
		}
		count[m[3]]++
		calls = append(calls, Call{Name: m[3], K: count[m[3]], Line: m[2], index: len(calls)})
	}
	return calls, nil
}

// echoed tells a call of a thread from what strace prints when a thread dies with its process: it cannot read the
// thread's registers any more and shows the last call of another thread, which never ends.
func echoed(log string, m []string) bool {
	return strings.HasSuffix(m[2], " ...>") && !strings.Contains(log, fmt.Sprintf("%s <... %s resumed>", m[1], m[3]))
}

// pick reads the log of all calls for those of the first thread that change something under the directories.
func (r Run) pick(log string) ([]Call, error) {
	under := r.under()
	var calls []Call
	all, picked := map[string]int{}, map[string]int{}
	thread := ""
	for line := range strings.Lines(log) {
		m := traced.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		if thread == "" {
			thread = m[1]
		}
		c := Call{Name: m[3], Line: m[2], index: len(calls)}
		counts := under.MatchString(c.Line) && c.changes() && !slices.Contains(passing, c.Name)
		switch {
		case thread == m[1]:
			all[c.Name]++
		case counts && !r.Beside && !echoed(log, m):
			return nil, fmt.Errorf("calls on the state come from two threads, %s and %s: %s", thread, m[1], c.Line)
		}
		if thread == m[1] && counts {
			picked[c.Name]++
			c.K, c.ahead = picked[c.Name], all[c.Name]-picked[c.Name]
			calls = append(calls, c)
		}
	}
	return calls, nil
}

// under matches a call with a path, or a descriptor, at or below the directories.
func (r Run) under() *regexp.Regexp {
	var dirs []string
	for _, d := range r.Under {
		dirs = append(dirs, regexp.QuoteMeta(d))
	}
	return regexp.MustCompile(`[<"](?:` + strings.Join(dirs, "|") + `)[/>"]`)
}
