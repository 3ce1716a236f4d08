package regctl

import (
	"fmt"

	"holdfast/internal/clikit"
	"holdfast/pkg/regfile"
	"holdfast/pkg/registry"
)

func recoverVerb(s *session) *clikit.Verb {
	return &clikit.Verb{
		Name:  "recover",
		Usage: "free a root whose service is gone without a release",
		Description: `First snapshot, which shows the service and a digest of exactly the state that it is in; then release with
that digest, which does it if the owner is proven dead and nothing has changed.`,
		Verbs: []*clikit.Verb{recoverSnapshotVerb(s), recoverReleaseVerb(s)},
	}
}

// leftover is a service that may have to be recovered.
type leftover struct {
	clikit.Head
	Registration  *registrationView `json:"registration"`
	Verdict       string            `json:"verdict"`
	VerdictReason string            `json:"verdictReason"`
	Digest        string            `json:"digest"`
	Remedy        string            `json:"remedy"`
}

// Text says it in three lines.
func (o *leftover) Text() string {
	r := o.Registration
	return fmt.Sprintf("%s: %s at %s, by pid %d on %s\n  owner    %s: %s\n  remedy   %s", regfile.Printable(r.Root), r.Phase, r.Endpoint, r.PID,
		regfile.Printable(r.Host), o.Verdict, o.VerdictReason, o.Remedy)
}

func recoverSnapshotVerb(s *session) *clikit.Verb {
	var o rootOptions
	return &clikit.Verb{
		Name:  "snapshot",
		Usage: "show the service of a root, and the digest of its state",
		Description: `Reads only.

Example:

   regctl recover snapshot --root . | jq -r '.verdict, .digest'`,
		Flags:   o.flags(),
		Objects: []clikit.Object{&leftover{}},
		Run: func(c *clikit.Call) error {
			h, err := s.openRoot(o)
			if err != nil {
				return err
			}
			defer h.Close()
			found, err := h.RecoverSnapshot(o.root)
			if err != nil {
				return err
			}
			object := &leftover{
				Head: clikit.Done("snapshot"), Registration: viewRegistration(&found.Registration), Verdict: string(found.Verdict.Word),
				VerdictReason: found.Verdict.Reason, Digest: found.Digest,
				Remedy: "none is safe while its owner is not proven dead",
			}
			if object.Verdict == "dead" {
				object.Remedy = "regctl recover release" + s.flags() + " --expected " + found.Digest
			}
			return c.Emit(object)
		},
	}
}

// recovered is a service that was released in its owner's place.
type recovered struct {
	clikit.Head
	Registration *registrationView `json:"registration"`
}

// Text says it in a line.
func (o *recovered) Text() string {
	return fmt.Sprintf("%s: recovered, epoch %s is over", regfile.Printable(o.Registration.Root), o.Registration.Epoch)
}

func recoverReleaseVerb(s *session) *clikit.Verb {
	var o rootOptions
	var expected string
	return &clikit.Verb{
		Name:  "release",
		Usage: "release a service whose owner is proven dead",
		Description: `Refused when the owner is not proven dead (quarantine), or when anything has changed since the snapshot
(conflict). A digest serves once.

Example: the command that snapshot prints

   regctl recover release --root . --expected sha256:0f34…`,
		Flags:   append(o.flags(), clikit.TextFlag("expected", "the `DIGEST` that snapshot printed", "none", &expected)),
		Objects: []clikit.Object{&recovered{}},
		Mutates: true,
		Run: func(c *clikit.Call) error {
			if expected == "" {
				return clikit.Usagef("in which state? give --expected DIGEST; 'regctl recover snapshot' prints it")
			}
			h, err := s.openRoot(o)
			if err != nil {
				return err
			}
			defer h.Close()
			r, err := h.Recover(c.Context, o.root, expected)
			if err != nil {
				return err
			}
			return c.Emit(&recovered{Head: clikit.Done("recovered"), Registration: viewRegistration(r)})
		},
	}
}

type repairOptions struct {
	homeOptions
	apply    bool
	expected string
}

func repairVerb(s *session) *clikit.Verb {
	var o repairOptions
	return &clikit.Verb{
		Name:  "repair",
		Usage: "put in order what an operation left that stopped in the middle",
		Description: `Prints a plan, a step a line, and its digest at the end: which file, why it is wrong, and what would be done.
An acquire that was cut off before its registration is rolled back, everything later is rolled forward. Nothing is deleted:
what goes is moved to broken/ in the state home. What no operation leaves is left as it is, and said; while that is what the
operation was about, the lock stays as well.

With --apply --expected DIGEST exactly that plan is carried out, unless it would be another one by now. The retained lock,
which keeps everything else from changing meanwhile, goes last.

Example:

   regctl repair --format text
   regctl repair --apply --expected sha256:0f34…`,
		Flags: append(o.flags(),
			boolFlag("apply", "carry the plan out", &o.apply),
			clikit.TextFlag("expected", "with --apply: the plan's `DIGEST`", "none", &o.expected),
		),
		Objects: []clikit.Object{&repairStep{}, &repairEnd{}},
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.repair(c, o) },
	}
}

// repairStep is one step of a plan, or of what was done.
type repairStep struct {
	clikit.Head
	Step   int    `json:"step"`
	Action string `json:"action"`
	clikit.Location
	Root    string `json:"root,omitzero"`
	Why     string `json:"why"`
	MovedTo string `json:"movedTo,omitzero"` // once it is done
}

// actions say in words what is done, before and after.
var actions = map[registry.Action][2]string{
	registry.Moves:    {"would be moved to broken/", "was moved to"},
	registry.Rewrites: {"would be written without the row", "was written without the row"},
	registry.Leaves:   {"is not touched", "was not touched"},
	registry.Unlocks:  {"would be removed, last", "was removed"},
}

// Text says it in two lines.
func (o *repairStep) Text() string {
	words := actions[registry.Action(o.Action)]
	done := words[0]
	if o.Code == "repaired" {
		done = words[1]
	}
	switch registry.Action(o.Action) {
	case registry.Rewrites:
		done += " of " + regfile.Printable(o.Root)
		if o.MovedTo != "" {
			done += "; a copy is " + regfile.Printable(o.MovedTo)
		}
	case registry.Moves:
		if o.MovedTo != "" {
			done += " " + regfile.Printable(o.MovedTo)
		}
	}
	return fmt.Sprintf("%2d  %s\n    %s: %s", o.Step, regfile.Printable(o.Path), done, o.Why)
}

// repairEnd ends a plan.
type repairEnd struct {
	clikit.Head
	Steps  int    `json:"steps"`
	Digest string `json:"digest"`
	Remedy string `json:"remedy,omitzero"`

	left int // steps that leave what they are about
}

// Text says what to type next.
func (o *repairEnd) Text() string {
	switch {
	case o.Code == "repaired" && o.left == 0:
		return "done; everything is readable"
	case o.Code == "repaired":
		return "done; what was not touched is for you to look at"
	case o.Steps == 0:
		return "there is nothing to repair"
	case o.Remedy == "":
		return "nothing of this can be repaired; it is for you to look at"
	}
	return "to do exactly that: " + o.Remedy
}

func (s *session) repair(c *clikit.Call, o repairOptions) error {
	if o.apply != (o.expected != "") {
		return clikit.Usagef("--apply and --expected DIGEST go together: first look at the plan that 'regctl repair' prints")
	}
	h, err := s.open(o.homeOptions)
	if err != nil {
		return err
	}
	defer h.Close()
	plan, code := (*registry.Plan)(nil), "plan"
	if o.apply {
		code = "repaired"
		plan, err = h.Repair(c.Context, o.expected)
	} else {
		plan, err = h.PlanRepair(c.Context)
	}
	if err != nil {
		return err
	}
	return s.emitPlan(c, plan, code)
}

func (s *session) emitPlan(c *clikit.Call, plan *registry.Plan, code string) error {
	left := 0
	for i, step := range plan.Steps {
		object := &repairStep{
			Head: clikit.Done(code), Step: i + 1, Action: string(step.Action), Location: clikit.At(step.Path), Root: step.Root, Why: step.Why, MovedTo: step.To,
		}
		if err := c.Emit(object); err != nil {
			return err
		}
		if step.Action == registry.Leaves {
			left++
		}
	}
	end := &repairEnd{Head: clikit.Done(code), Steps: len(plan.Steps), Digest: plan.Digest, left: left}
	if code == "plan" && !plan.Done() {
		end.Remedy = "regctl repair" + s.homeFlag() + " --apply --expected " + plan.Digest
	}
	return c.Emit(end)
}
