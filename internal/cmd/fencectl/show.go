package fencectl

import (
	"cmp"
	"fmt"

	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
	"holdfast/pkg/regfile"
)

type showOptions struct {
	target
	tree string
}

func showVerb(s *session) *clikit.Verb {
	var o showOptions
	return &clikit.Verb{
		Name:  "show",
		Usage: "say who owns a session directory, and whether that owner lives",
		Description: `Reads only. The code is the claim's state, or absent; a claim that cannot be trusted is refused, with
status 65. The verdict is about the owner's process: live, dead, uncertain or other-host, with the reason.

With --tree, one object for each directory at or below DIR that has a claim, in the order of the paths; what cannot be
looked into is said on standard error.

Example: the session directories whose owner died without closing

   fencectl show --tree sessions | jq -r 'select(.verdict == "dead" and .code != "closed").resource'`,
		Flags:   append(o.flags(), clikit.TextFlag("tree", "every session `DIR`ectory at and below this one", "none", &o.tree)),
		Objects: []clikit.Object{&shown{}},
		Lists:   true,
		Run:     func(c *clikit.Call) error { return s.show(c, o) },
	}
}

// shown is a session directory as it was found.
type shown struct {
	clikit.Head
	status
}

// Text says it, a fact a line.
func (o *shown) Text() string {
	return regfile.Printable(o.Resource) + ": " + o.Code + o.lines()
}

func (s *session) show(c *clikit.Call, o showOptions) error {
	if o.tree != "" {
		if o.dir != "" {
			return clikit.Usagef("give --dir or --tree, not both")
		}
		return s.showTree(c, o.tree)
	}
	f, err := s.open(o.target, false)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Show()
	if err != nil {
		return err
	}
	return c.Emit(s.shown(st))
}

// shown is what was found as an object: a refusal when the claim or the transaction file cannot be trusted, with all that
// could be told.
func (s *session) shown(st *fence.Status) clikit.Object {
	if err := cmp.Or(st.Err, st.TxErr); err != nil {
		r := s.refusal(err)
		r.observed(viewStatus(st))
		return r
	}
	code := "absent"
	if st.Claim != nil {
		code = string(st.Claim.State)
	}
	return &shown{Head: clikit.Done(code), status: viewStatus(st)}
}

func (s *session) showTree(c *clikit.Call, root string) error {
	unread := 0
	failed := func(path string, err error) {
		unread++
		c.Warn("%s was not looked into: %v", regfile.Printable(path), err)
	}
	s.dir = root
	err := fence.Tree(root, s.options(), func(st *fence.Status) error {
		s.dir = st.Resource
		return c.Emit(s.shown(st))
	}, failed)
	s.dir = root
	if err == nil && unread > 0 {
		return &incompleteError{root: root, unread: unread}
	}
	return err
}

// incompleteError says that a tree was not seen whole.
type incompleteError struct {
	root   string
	unread int
}

// ErrorCode is the stable code.
func (e *incompleteError) ErrorCode() string { return "tree-incomplete" }

func (e *incompleteError) Error() string {
	return fmt.Sprintf("%d entries of %s were not looked into; what was found is listed", e.unread, regfile.Printable(e.root))
}
