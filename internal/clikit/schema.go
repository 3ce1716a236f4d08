package clikit

import (
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"holdfast/pkg/strictjson"
)

// schemaObject carries the JSON Schema of what one verb prints.
type schemaObject struct {
	Head
	For    string         `json:"for"`
	Schema jsontext.Value `json:"schema"`
}

// Text is the schema, indented.
func (s *schemaObject) Text() string {
	b := s.Schema.Clone()
	if err := b.Indent(); err != nil {
		return string(s.Schema)
	}
	return s.For + ": " + string(b)
}

// SchemaVerb is the verb that prints the JSON Schemas of all of p's objects, one line for each verb, this one included;
// example is a verb for its help.
func SchemaVerb(p *Program, example string) *Verb {
	v := &Verb{
		Name:  "schema",
		Usage: "print the JSON Schema of every object this program prints",
		Description: "One line for each verb. Fields may be added in later versions; the ones that are required stay.\n\n" +
			"Example: the schema of one verb\n\n   " + p.Name + " schema | jq 'select(.for == \"" + example + "\").schema'",
		Objects: []Object{&schemaObject{}},
		Lists:   true,
	}
	v.Run = func(c *Call) error {
		return p.EachSchema(func(op string, schema []byte) error {
			return c.Emit(&schemaObject{Head: Done("schema"), For: op, Schema: schema})
		})
	}
	return v
}

// EachSchema calls f with the JSON Schema of each verb's objects, refusals included.
func (p *Program) EachSchema(f func(op string, schema []byte) error) error {
	refusal := p.Refusal
	if refusal == nil {
		refusal = &PlainRefusal{}
	}
	// A command line that names no verb is answered too; groups of verbs answer under their own names.
	wordless := []*Verb{{Name: "usage", Run: func(*Call) error { return nil }}}
	for _, v := range p.Verbs {
		if v.Run == nil {
			wordless = append(wordless, &Verb{Name: v.Name, Run: wordless[0].Run})
		}
	}
	return eachVerb(slices.Concat(p.Verbs, wordless), "", func(op string, v *Verb) error {
		b, err := json.Marshal(schemaOf(append(slices.Clone(v.Objects), refusal)), json.Deterministic(true))
		if err != nil {
			return err
		}
		return f(op, b)
	})
}

func eachVerb(verbs []*Verb, above string, f func(op string, v *Verb) error) error {
	for _, v := range verbs {
		op := strings.TrimPrefix(above+"-"+v.Name, "-")
		var err error
		if v.Run != nil {
			err = f(op, v)
		} else {
			err = eachVerb(v.Verbs, op, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// schemaOf is the schema of an object that is one of several.
func schemaOf(objects []Object) map[string]any {
	var anyOf []any
	for _, o := range objects {
		anyOf = append(anyOf, typeSchema(reflect.TypeOf(o)))
	}
	return map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "anyOf": anyOf}
}

// typeSchema describes a type as its JSON encoding shows it.
func typeSchema(t reflect.Type) map[string]any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[strictjson.Object]() || t == reflect.TypeFor[jsontext.Value]():
		return map[string]any{"type": "object"}
	case t == reflect.TypeFor[[]byte]():
		return map[string]any{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.Struct:
		return structSchema(t)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": typeSchema(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}
	}
	panic("no schema for " + t.String())
}

func structSchema(t reflect.Type) map[string]any {
	properties := map[string]any{}
	var required []any
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		properties[name] = typeSchema(f.Type)
		if !strings.Contains(options, "omitzero") {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}
