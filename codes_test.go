package holdfast_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/internal/clikit"
)

var update = flag.Bool("update", false, "write docs/codes.md instead of comparing it")

const codesDocument = "docs/codes.md"

// TestCodesDocument keeps the document equal to the table in the code; `make codes` writes it.
func TestCodesDocument(t *testing.T) {
	want := document()
	if *update {
		if err := os.WriteFile(codesDocument, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(codesDocument)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the code says; run 'make codes' (%v)", codesDocument, err)
	}
}

const documentIntro = `# Codes and exit statuses

Every object that a program prints has a ` + "`code`" + `, a stable word, and every refusal ends the program with the status that
belongs to its code. Branch on the code where the reason matters, on the status where it does not. Codes may be added; a
status that is not listed here is a failure. A code listed under 0 says what was done or found.

The ` + "`reason`" + ` beside a code is for people and may change. This file is made by ` + "`make codes`" + `.
`

// headings say what a status means, in the order of the document.
var headings = []struct {
	status int
	text   string
}{
	{0, "done, or the predicate holds"},
	{1, "refused: somebody else's turn, or the predicate is false"},
	{64, "usage: nothing was read or written"},
	{65, "what is there cannot be trusted"},
	{69, "a shared register cannot be reached"},
	{70, "a bug in this program"},
	{74, "the system refused; the reason has the errno's name"},
	{75, "try again"},
}

func document() string {
	var b strings.Builder
	b.WriteString(documentIntro)
	for _, h := range headings {
		rows := ""
		for _, c := range clikit.Codes {
			if c.Status == h.status {
				rows += fmt.Sprintf("| `%s` | %d | %s |\n", c.Word, c.Status, c.Meaning)
			}
		}
		if rows != "" {
			fmt.Fprintf(&b, "\n## %d: %s\n\n| code | status | meaning |\n|---|---|---|\n%s", h.status, h.text, rows)
		}
	}
	return b.String()
}

func TestEveryListedCodeIsInTheDocument(t *testing.T) {
	text := document()
	for _, c := range clikit.Codes {
		if !strings.Contains(text, fmt.Sprintf("\n| `%s` | %d |", c.Word, c.Status)) {
			t.Errorf("%s, status %d, has no heading", c.Word, c.Status)
		}
	}
}

// TestEveryCodeInUseIsListed reads the production code: no word may be printed that the contract does not list, and none
// is listed that nothing can print.
func TestEveryCodeInUseIsListed(t *testing.T) {
	used, literals := words(t)
	if len(used) < 40 {
		t.Fatalf("only %d codes found: %q", len(used), slices.Sorted(maps.Keys(used)))
	}
	for _, word := range slices.Sorted(maps.Keys(used)) {
		if !clikit.IsCode(word) {
			t.Errorf("%s: the code %q is not listed in clikit.Codes", used[word], word)
		}
	}
	for _, c := range clikit.Codes {
		if !literals[c.Word] {
			t.Errorf("nothing prints the code %q", c.Word)
		}
	}
}

// words are the codes that production code uses, with one place each, and all its strings.
func words(t *testing.T) (used map[string]string, literals map[string]bool) {
	used, literals = map[string]string{}, map[string]bool{}
	for _, root := range []string{"pkg", "internal/clikit", "internal/cmd", "internal/supervise"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				path == filepath.Join("internal", "clikit", "codes.go") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if word, ok := text(n); ok {
					literals[word] = true
				}
				for _, e := range codesIn(n) {
					if word, ok := text(e); ok && word != "" {
						used[word] = set.Position(e.Pos()).String()
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return used, literals
}

// codesIn are the expressions below a node that are codes: constants called Code…, the constants of the types that are
// printed as codes, what ErrorCode and the claim's decision return, and what heads and clear errors are made of.
func codesIn(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.ValueSpec:
		kind, _ := n.Type.(*ast.Ident)
		if strings.HasPrefix(n.Names[0].Name, "Code") || kind != nil && (kind.Name == "State" || kind.Name == "Kind") {
			return n.Values
		}
	case *ast.FuncDecl:
		if n.Name.Name == "ErrorCode" || n.Name.Name == "refuseClear" {
			return returned(n)
		}
	case *ast.CallExpr:
		if name := calleeName(n); len(n.Args) > 0 && (name == "Done" || name == "Refused") {
			return n.Args[:1]
		}
	case *ast.CompositeLit:
		if kind, ok := n.Type.(*ast.Ident); ok && kind.Name == "ClearError" && len(n.Elts) > 0 {
			return n.Elts[:1]
		}
	}
	return nil
}

func returned(f *ast.FuncDecl) (values []ast.Expr) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok {
			values = append(values, r.Results...)
		}
		return true
	})
	return values
}

func calleeName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func text(n ast.Node) (string, bool) {
	if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		word, err := strconv.Unquote(lit.Value)
		return word, err == nil
	}
	return "", false
}
