package clikit

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// statuses is the design's table of exit statuses. What is in no row of it is 1.
var statuses = map[int]string{
	64: "usage admission-invalid reservation-invalid profile-required reserve-meta-root-split",
	65: "not-regular corrupt too-large unstable claim-unreadable journal-corrupt declaration-invalid foreign-owner uncertain schema-newer",
	69: "register-unreachable publish-unknown",
	70: "bug",
	74: "io mount-point no-atomic-publish directory-invalid output-undeliverable tx-release-failed record-arm-release-failed",
	75: "claim-timeout claim-lost tx-held tx-lost record-arm-busy wait-timeout busy unavailable",
}

func TestEachCodeHasTheStatusOfTheContract(t *testing.T) {
	want := map[string]int{}
	for status, words := range statuses {
		for word := range strings.FieldsSeq(words) {
			want[word] = status
		}
	}
	for _, c := range Codes {
		switch {
		case want[c.Word] != 0 && c.Status != want[c.Word]:
			t.Errorf("%s has status %d, the contract says %d", c.Word, c.Status, want[c.Word])
		case want[c.Word] == 0 && c.Status != 0 && c.Status != 1:
			t.Errorf("%s has status %d, and the contract does not name it", c.Word, c.Status)
		}
		if got := StatusOf(c.Word); c.Status != 0 && got != c.Status || c.Status == 0 && got != 1 {
			t.Errorf("a refusal of code %s ends with %d", c.Word, got)
		}
	}
	if StatusOf("a word of a later version") != 1 {
		t.Error("an unknown refusal is not a plain one")
	}
}

func TestCodesAreWordsWithAMeaningEachOnce(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, c := range Codes {
		if !word.MatchString(c.Word) || seen[c.Word] {
			t.Errorf("%q is no word, or there twice", c.Word)
		}
		seen[c.Word] = true
		if c.Meaning == "" || strings.HasSuffix(c.Meaning, ".") || strings.ContainsAny(c.Meaning, "|\n") {
			t.Errorf("%s: %q", c.Word, c.Meaning)
		}
	}
}

func TestTheHelpNamesEveryStatus(t *testing.T) {
	for _, c := range Codes {
		if !regexp.MustCompile(`(?m)^   ` + regexp.QuoteMeta(strconv.Itoa(c.Status)) + ` `).MatchString(exitTable) {
			t.Errorf("status %d of %s is not in the help", c.Status, c.Word)
		}
	}
}
