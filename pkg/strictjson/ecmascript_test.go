package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"holdfast/internal/testkit"
)

// stringify makes a Node program of JSON.stringify: from one JSON text a line to one JSON string a line.
const stringify = `
const lines = require("fs").readFileSync(0, "utf8").split("\n").filter(l => l !== "");
for (const l of lines) console.log(JSON.stringify(JSON.stringify(JSON.parse(l), null, 2)));
`

func TestIndentedIsWhatJSONStringifyWrites(t *testing.T) {
	testkit.NeedTool(t, "node")
	documents := append(chosenDocuments(), randomDocuments(400)...)
	cmd := exec.Command("node", "-e", stringify)
	cmd.Stdin = strings.NewReader(strings.Join(documents, "\n"))
	lines := strings.Split(strings.TrimSpace(testkit.Play(t, cmd)), "\n")
	if len(lines) != len(documents) {
		t.Fatalf("%d answers to %d documents", len(lines), len(documents))
	}
	for i, text := range documents {
		var want string
		if err := json.Unmarshal([]byte(lines[i]), &want); err != nil {
			t.Fatal(err)
		}
		if got := string(parsed(t, text).Indented()); got != want+"\n" {
			t.Errorf("%s\nis written\n%q\nand by Node\n%q", text, got, want+"\n")
		}
		if again := string(parsed(t, want).Indented()); again != want+"\n" {
			t.Errorf("Node's own text\n%q\nis written\n%q", want, again)
		}
	}
}

// chosenDocuments are the cases in which two encoders of JSON tend to differ.
func chosenDocuments() []string {
	documents := []string{
		`{}`, `{"a":{}}`, `{"a":[]}`, `{"a":[[],{},[[]],[{}]]}`, `{"a":{"b":{"c":[1,[2,[3,{"d":[]}]]]}}}`,
		`{"":"","a b":null,"ü":true,"\u0000":false,"__proto__":1}`,
		`{"s":"<script>&'\u2028\u2029\u007f\u0080\u009f\u00a0\ufeff\ufffd\uffff/\/"}`,
		`{"s":"😀 e\u0301 \ud83d\ude00"}`,
	}
	var controls, every Object
	for r := rune(0); r < 0x20; r++ {
		controls.Set(fmt.Sprintf("u%02x", r), "a"+string(r)+"b")
		controls.Set("name "+string(r), 1)
	}
	for _, n := range []float64{
		0, 1, -1, 900, 0.1, 1.5, 1e20, 1e21, 123456789012345680000, 1e-6, 1e-7, 5e-324, math.MaxFloat64, -math.MaxFloat64,
		1 << 53, 1<<53 - 1, 100.0 / 3,
	} {
		every.Set(fmt.Sprint("n", n), n)
	}
	for _, o := range []Object{controls, every} {
		b := bytes.ReplaceAll(o.Indented(), []byte("\n"), nil)
		documents = append(documents, string(b))
	}
	return documents
}

// randomDocuments are nested objects whose numbers are written as ECMAScript writes them; names that are array indices are
// left out, for ECMAScript sorts those to the front.
func randomDocuments(n int) []string {
	rng := rand.New(rand.NewPCG(1, 2))
	documents := make([]string, n)
	for i := range documents {
		b, err := Line(randomObject(rng, 4))
		if err != nil {
			panic(err)
		}
		documents[i] = strings.TrimSuffix(string(b), "\n")
	}
	return documents
}

func randomObject(rng *rand.Rand, depth int) map[string]any {
	o := map[string]any{}
	for range rng.IntN(4) {
		o["k"+randomString(rng)] = randomValue(rng, depth-1)
	}
	return o
}

func randomValue(rng *rand.Rand, depth int) any {
	switch kind := rng.IntN(8); {
	case kind == 0 && depth > 0:
		return randomObject(rng, depth)
	case kind == 1 && depth > 0:
		list := make([]any, rng.IntN(4))
		for i := range list {
			list[i] = randomValue(rng, depth-1)
		}
		return list
	case kind == 2:
		return rng.IntN(2) == 0
	case kind == 3:
		return nil
	case kind == 4:
		return math.Float64frombits(rng.Uint64() & ^(uint64(1) << 62)) // finite: not all bits of the exponent are set
	case kind == 5:
		return float64(rng.Int64N(1 << 40))
	}
	return randomString(rng)
}

func randomString(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(6) {
		if r := rune(rng.IntN(0x300)); rng.IntN(5) > 0 {
			b.WriteRune(r)
		} else {
			b.WriteRune([]rune{0x2028, 0x2029, 0xfeff, 0xffff, 0x1f600, 0xe000, '"', '\\'}[rng.IntN(8)])
		}
	}
	return b.String()
}
