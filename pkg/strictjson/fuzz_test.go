package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

// FuzzParse: whatever Parse accepts is JSON for a plain decoder too, without a duplicate name, and written back it reads
// as itself. Whatever it refuses has a fault with a place inside the text.
func FuzzParse(f *testing.F) {
	for _, c := range faults {
		f.Add([]byte(c.text))
	}
	for _, text := range chosenDocuments() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var open struct{}
		decodeErr := DecodeOpen(text, &open)
		o, err := Parse(text)
		if err != nil {
			var fault *Error
			if !errors.As(err, &fault) || fault.Fault == "" || fault.Fault == Shape || fault.Offset > int64(len(text)) {
				t.Fatalf("%#v", err)
			}
			var other *Error
			if !errors.As(decodeErr, &other) || *other != *fault {
				t.Fatalf("Parse says %v, DecodeOpen %v", err, decodeErr)
			}
			return
		}
		if decodeErr != nil {
			t.Fatal("Parse accepts what DecodeOpen refuses:", decodeErr)
		}
		if !json.Valid(text) {
			t.Fatal("encoding/json refuses it")
		}
		noDuplicates(t, text)
		written := o.Indented()
		again, err := Parse(written)
		if err != nil {
			t.Fatalf("%v: %q", err, written)
		}
		if !bytes.Equal(again.Indented(), written) {
			t.Fatalf("%q is not a fixed point: %q", written, again.Indented())
		}
	})
}

// noDuplicates walks the tokens of a JSON text and fails at a name that its object has already.
func noDuplicates(t *testing.T, text []byte) {
	dec := json.NewDecoder(bytes.NewReader(text))
	type level struct {
		names map[string]bool // nil in an array
		value bool            // the next token is a member's value
	}
	var stack []*level
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		delim, _ := token.(json.Delim)
		if delim == '}' || delim == ']' {
			stack = stack[:len(stack)-1]
			continue
		}
		if len(stack) > 0 {
			in := stack[len(stack)-1]
			if name, ok := token.(string); ok && in.names != nil && !in.value {
				if in.names[name] {
					t.Fatalf("the name %q is there twice", name)
				}
				in.names[name] = true
				in.value = true
				continue
			}
			in.value = false
		}
		switch delim {
		case '{':
			stack = append(stack, &level{names: map[string]bool{}})
		case '[':
			stack = append(stack, &level{})
		}
	}
}
