package fsdoctor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/doctor"
	"holdfast/pkg/regfile"
)

type checkOptions struct {
	profile  string
	promote  string
	only     string
	offline  bool
	list     bool
	patience time.Duration
}

func checkVerb() *clikit.Verb {
	o := checkOptions{profile: "generic"}
	return &clikit.Verb{
		Name:  "check",
		Usage: "say what in a state directory would hang, mislead or block the other programs, and what cures it",
		Args:  "[DIR…]",
		Description: `A directory may be a fleet's home, a session directory, a state home, or a tree that has such below it; without
one it is the current directory. One object for each finding, check by check, and a summary at the end. The status is 1
when anything failed. Nothing is written or removed, and nothing that is no regular file is opened.

--profile strict makes a failure of every warning, --promote of those with the named conditions. --format sh prints the
remedies as a script to review.

Example: what is wrong with this fleet, and the commands for it

   fsdoctor check --format text .
   fsdoctor check . | jq -r 'select(.status != "pass") | "\(.path): \(.remedy)"'`,
		Flags: []cli.Flag{
			clikit.WordFlag("profile", "how strict to be", &o.profile, "generic", "strict"),
			clikit.TextFlag("promote", "`CONDITION,…` whose warnings are failures", "none", &o.promote),
			clikit.TextFlag("only", "`CHECK,…` to run", "all", &o.only),
			&cli.BoolFlag{Name: "offline", Usage: "ask no register", Destination: &o.offline, DisableDefaultText: true},
			&cli.BoolFlag{Name: "list", Usage: "say which checks there are", Destination: &o.list, DisableDefaultText: true},
			probeFlag(&o.patience),
		},
		Objects: []clikit.Object{&checkObject{}, &checkSummary{}, &checkInfo{}},
		Script:  true,
		Lists:   true,
		Run:     func(c *clikit.Call) error { return check(c, o) },
	}
}

// checkObject is one finding of a check.
type checkObject struct {
	clikit.Head
	Check     string `json:"check"`
	Status    string `json:"status"` // pass, warn or fail
	Condition string `json:"condition,omitzero"`
	clikit.Location
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitzero"`

	again bool // the script has that remedy already
}

// The colours of a report.
var colours = map[string]string{"pass": "32", "warn": "33", "fail": "31"}

// Text is a line of the report, and the remedy under it.
func (o *checkObject) Text() string {
	text := fmt.Sprintf("%s  %-12s %s: %s", painted(o.Status), o.Check, regfile.Printable(o.Path), o.Detail)
	if o.Remedy != "" {
		text += "\n      remedy: " + o.Remedy
	}
	return text
}

// Script is the remedy as a piece of a script, under a comment that says what it is for.
func (o *checkObject) Script() string {
	if o.Status == "pass" {
		return ""
	}
	text := comment(fmt.Sprintf("%s %s, %s: %s", o.Status, o.Check, regfile.Printable(o.Path), o.Detail))
	switch {
	case strings.HasPrefix(o.Remedy, "none is"):
		return text + comment(o.Remedy) + "\n"
	case o.again:
		return text + comment("the remedy is above") + "\n"
	case strings.Contains(o.Remedy, " WHY"):
		return text + comment("say why, and then: "+o.Remedy) + "\n"
	}
	return text + o.Remedy + "\n\n"
}

// comment is a line of a script that does nothing, whatever is in the text.
func comment(text string) string {
	return "# " + strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text) + "\n"
}

// painted is a status in its colour, where a terminal shows colours and nobody has said no to them.
func painted(status string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !clikit.IsTerminal(1) {
		return status
	}
	return "\x1b[" + colours[status] + "m" + status + "\x1b[0m"
}

// checkSummary ends a report.
type checkSummary struct {
	clikit.Head
	Pass    int    `json:"pass"`
	Warn    int    `json:"warn"`
	Fail    int    `json:"fail"`
	Profile string `json:"profile"`
}

// Text is the counts.
func (o *checkSummary) Text() string {
	return fmt.Sprintf("%d failed, %d warnings, %d passed (profile %s)", o.Fail, o.Warn, o.Pass, o.Profile)
}

// Script is the counts as a comment.
func (o *checkSummary) Script() string { return "# " + o.Text() + "\n" }

// checkInfo is one check, for --list.
type checkInfo struct {
	clikit.Head
	Check      string   `json:"check"`
	LooksAt    string   `json:"looksAt"`
	Conditions []string `json:"conditions"`
}

// Text is the name and what it looks at.
func (o *checkInfo) Text() string {
	text := fmt.Sprintf("%-13s %s", o.Check, o.LooksAt)
	if len(o.Conditions) > 0 {
		text += " (" + strings.Join(o.Conditions, ", ") + ")"
	}
	return text
}

func words(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func check(c *clikit.Call, o checkOptions) error {
	checks, err := doctor.Named(words(o.only))
	if err != nil {
		return clikit.Usagef("--only %s: %v; 'fsdoctor check --list' shows them", o.only, err)
	}
	for _, word := range words(o.promote) {
		if !clikit.IsCode(word) {
			return clikit.Usagef("--promote %s: no condition is called %q; 'fsdoctor check --list' shows them", o.promote, word)
		}
	}
	if o.list {
		if len(c.Args) > 0 {
			return clikit.Usagef("--list takes no directory")
		}
		return listChecks(c, checks)
	}
	if slices.Contains(c.Args, "") {
		return clikit.Usagef("an empty path names nothing")
	}
	roots := c.Args
	if len(roots) == 0 {
		roots = []string{"."}
	}
	here, _ := os.Getwd()
	r := &report{call: c, here: here + "/", strict: o.profile == "strict", promoted: words(o.promote), cured: map[string]bool{},
		summary: checkSummary{Head: clikit.Done("summary"), Profile: o.profile}}
	if err := doctor.Examine(roots, checks, doctor.NewGuard(o.patience, roots...), r.add); err != nil {
		return err
	}
	return r.end()
}

func listChecks(c *clikit.Call, checks []doctor.Check) error {
	for _, check := range checks {
		conditions := check.Conditions
		if conditions == nil {
			conditions = []string{}
		}
		if err := c.Emit(&checkInfo{Head: clikit.Done("check"), Check: check.Name, LooksAt: check.LooksAt, Conditions: conditions}); err != nil {
			return err
		}
	}
	return nil
}

// report is one report. In text it is read from the top: what failed comes first, then the warnings, then what is fine. A script is
// run from the top.
type report struct {
	call     *clikit.Call
	strict   bool
	promoted []string // conditions whose warnings are failures
	summary  checkSummary
	later    []*checkObject
	cured    map[string]bool // remedies that a script has already
	here     string          // the working directory, with a slash
}

func (r *report) add(result doctor.Result) error {
	o := r.object(result)
	switch o.Status {
	case "fail":
		r.summary.Fail++
	case "warn":
		r.summary.Warn++
	default:
		r.summary.Pass++
	}
	if r.call.Textual() || r.call.Scripted() {
		r.later = append(r.later, o)
		return nil
	}
	return r.emit(o)
}

// emit prints an object. Whether anything failed is the status, whatever the codes are, also when a reader leaves early.
func (r *report) emit(o clikit.Object) error {
	err := r.call.Emit(o)
	status := 0
	if r.summary.Fail > 0 {
		status = 1
	}
	r.call.Exit(status)
	return err
}

func (r *report) object(result doctor.Result) *checkObject {
	status := string(result.Severity)
	if status == "warn" && (r.strict || slices.Contains(r.promoted, result.Condition)) {
		status = "fail"
	}
	o := &checkObject{
		Head: clikit.Done("pass"), Check: result.Check, Status: status, Condition: result.Condition, Location: clikit.At(result.Path), Detail: result.Detail,
	}
	if status != "pass" {
		o.Code, o.Remedy = result.Condition, remedy(result)
	}
	o.OK = status != "fail"
	return o
}

func (r *report) end() error {
	order := worstFirst
	if r.call.Scripted() {
		order = claimsFirst
	}
	slices.SortStableFunc(r.later, func(a, b *checkObject) int { return order(a) - order(b) })
	for _, o := range r.later {
		remedy := strings.ReplaceAll(o.Remedy, r.here, "") // one path may be given in two ways
		o.again, r.cured[remedy] = r.cured[remedy], true
		if err := r.emit(o); err != nil {
			return err
		}
	}
	if r.summary.Fail > 0 {
		r.summary.OK = false
	}
	return r.emit(&r.summary)
}

// worstFirst is the order of a report.
func worstFirst(o *checkObject) int {
	return map[string]int{"fail": 0, "warn": 1, "pass": 2}[o.Status]
}

// claimsFirst is the order of a script: a claim file keeps other commands out.
func claimsFirst(o *checkObject) int {
	if o.Check == "claims" {
		return 0
	}
	return 1
}
