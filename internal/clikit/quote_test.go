package clikit

import (
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast/internal/testkit"
)

func TestQuoteLeavesPlainWordsAlone(t *testing.T) {
	for word, want := range map[string]string{
		"": "''", "state/orchestrator.lock": "state/orchestrator.lock", "sha256:0af": "sha256:0af", "a b": "'a b'", "it's": `'it'\''s'`,
		"$HOME": "'$HOME'", "~": "'~'", "*": "'*'", "größe": "'größe'", "a\nb": "'a\nb'", "\xff": `"$(printf '\377')"`,
		"a\x1b[2J b": `a"$(printf '\033')"'[2J b'`, "\u009b": `"$(printf '\302\233')"`,
	} {
		if got := Quote(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// Whatever a path or a token holds, the command in a remedy means exactly that word, and can be carried by JSON.
func TestAShellReadsAQuotedWordAsItself(t *testing.T) {
	for _, shell := range []string{"sh", "bash", "dash"} {
		t.Run(shell, func(t *testing.T) {
			testkit.NeedTool(t, shell)
			words := append(awkwardWords(), randomWords(300)...)
			var script strings.Builder
			for _, word := range words {
				script.WriteString("printf '%s\\0' " + Quote(word) + "\n")
			}
			cmd := exec.Command(shell)
			cmd.Stdin = strings.NewReader(script.String())
			got := strings.Split(testkit.Play(t, cmd), "\x00")
			if len(got) != len(words)+1 {
				t.Fatalf("%d words, want %d", len(got)-1, len(words))
			}
			for i, word := range words {
				if got[i] != word {
					t.Errorf("%q is quoted %s and read %q", word, Quote(word), got[i])
				}
			}
		})
	}
}

// An argument of a shell that is itself started with the quoted word in its command line.
func TestAQuotedWordIsOneArgument(t *testing.T) {
	testkit.NeedTool(t, "sh")
	for _, word := range awkwardWords() {
		out := testkit.Play(t, exec.Command("sh", "-c", "printf %s "+Quote(word)))
		if out != word {
			t.Errorf("%q is quoted %s and read %q", word, Quote(word), out)
		}
		if strings.HasSuffix(word, "\n") {
			continue // eval of a command substitution, as callers write it, drops what ends the text
		}
		out = testkit.Play(t, exec.Command("sh", "-c", `eval "$(printf %s "$1")"; printf %s "$X"`, "sh", "export X="+Quote(word)))
		if out != word {
			t.Errorf("%q is exported as %q", word, out)
		}
	}
}

func TestAQuotedWordIsText(t *testing.T) {
	for _, word := range append(awkwardWords(), randomWords(300)...) {
		quoted := Quote(word)
		if !utf8.ValidString(quoted) {
			t.Errorf("%q is quoted %q", word, quoted)
		}
		if b, err := json.Marshal(quoted); err != nil || len(b) == 0 {
			t.Errorf("%q: %v", word, err)
		}
	}
}

func awkwardWords() []string {
	return []string{
		"", " ", "'", "''", `"`, `\`, `\\`, "$", "$(id)", "`id`", "!", "!!", "#x", "~", "~root", "*", "?", "[a]", "{a,b}", "a=b", "=x", "-n", "-e", "--",
		"%s", "%n", "&", "|", ";", "<", ">", "(", ")", "\t", "\n", "a\n", "\n\n", "\r", "\x01", "\x7f", "\x1b[31m", "é", "日本", "\u2028", "\u202e",
		"\xff", "\xc3", "a\xffb", "\xed\xa0\x80", "'\xff'", "\\\xff\n", "if", "a'b\"c$d`e\\f g", strings.Repeat("'", 50),
	}
}

// randomWords have no NUL byte, which no argument can hold.
func randomWords(n int) []string {
	rng := rand.New(rand.NewPCG(3, 4))
	words := make([]string, n)
	for i := range words {
		b := make([]byte, rng.IntN(12))
		for j := range b {
			b[j] = byte(1 + rng.IntN(127))
			if i%10 == 0 {
				b[j] = byte(1 + rng.IntN(255))
			}
		}
		words[i] = string(b)
	}
	return words
}
