package fence

import (
	"errors"
	"strings"
	"testing"

	"holdfast/pkg/procid"
)

const (
	specCWD         = "/home/u/work"
	specIncarnation = "5c1e7f7e-9f3b-4a43-8a4b-0e6d8f1f2a3b"
)

// handed is the claim of a document, where the profile keeps the sessions of specCWD.
func handed(t testing.TB, doc jsObject) *Claim {
	t.Helper()
	c, err := Decode([]byte(strings.ReplaceAll(doc.stringify(), specDirectory, layout(specProfile, specCWD, "s1"))))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bindingOf is the record and the location that the owner of the donor's row enrolled.
func bindingOf(d Donor) binding {
	return binding{
		Record: &Record{GardenID: specGarden, NativeSessionID: d.Selected.N, AttachIncarnation: specIncarnation, CWD: specCWD},
		Location: &Location{
			SchemaVersion: 1, GardenID: specGarden, AttachIncarnation: specIncarnation, NativeDirectory: specResource,
			OwnerPID: d.Owner.PID, OwnerStartKey: d.Owner.StartKey, WrittenAt: specTime,
		},
	}
}

// edited is a copy of a claim with a change.
func edited(c *Claim, change func(c *Claim)) *Claim {
	next := *c
	if c.Reservation != nil {
		r := *c.Reservation
		next.Reservation = &r
	}
	change(&next)
	return &next
}

// answerOf is the code of what a decision said no with; empty when it said yes.
func answerOf(r *Refusal, err error) string {
	var coded interface{ ErrorCode() string }
	switch {
	case r != nil:
		return r.Code
	case errors.As(err, &coded):
		return coded.ErrorCode()
	case err != nil:
		return err.Error()
	}
	return ""
}

// elsewhereOwner is of another host, and of another boot.
func elsewhereOwner() procid.Identity {
	return procid.Identity{PID: 4001, StartKey: "linux:1@00000000-9f3b-4a43-8a4b-0e6d8f1f2a3b/4026531836", Hostname: "elsewhere"}
}
