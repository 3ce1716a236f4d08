package strictjson

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Object is an open JSON object: its members in the order they were written.
type Object struct {
	members []member
}

type member struct {
	name  string
	value jsontext.Value
}

// Parse reads one object and nothing else. The error is an *Error.
func Parse(b []byte) (Object, error) {
	if !plain(b) {
		return Object{}, diagnosed(b)
	}
	o, err := parse(bytes.Clone(b))
	if err != nil {
		return Object{}, diagnosed(b)
	}
	return o, nil
}

// parse makes an object of b, which it keeps.
func parse(b []byte) (Object, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(b))
	if _, err := dec.ReadToken(); err != nil {
		return Object{}, err
	}
	o := Object{members: make([]member, 0, 10)}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return Object{}, err
		}
		m := member{name: name.String()}
		value, err := dec.ReadValue()
		if err != nil {
			return Object{}, err
		}
		end := dec.InputOffset()
		m.value = b[end-int64(len(value)) : end : end]
		o.members = append(o.members, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return Object{}, err
	}
	if len(bytes.Trim(b[dec.InputOffset():], " \t\n")) > 0 {
		return Object{}, errTrailing
	}
	return o, nil
}

var errTrailing = errors.New("something follows the object")

// Clone returns a copy whose members can be set without changing o.
func (o Object) Clone() Object { return Object{members: slices.Clone(o.members)} }

func (o Object) find(name string) int {
	return slices.IndexFunc(o.members, func(m member) bool { return m.name == name })
}

// Has reports whether there is a member of that name.
func (o Object) Has(name string) bool { return o.find(name) >= 0 }

// Names returns the member names in order.
func (o Object) Names() []string {
	names := make([]string, len(o.members))
	for i, m := range o.members {
		names[i] = m.name
	}
	return names
}

// String returns a member that must be there and be a string.
func (o Object) String(name string) (string, error) {
	v, err := o.get(name, '"')
	if err != nil {
		return "", err
	}
	s, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return "", ShapeError("has a %q that is no string", name)
	}
	return string(s), nil
}

// Number returns a member that must be there and be a finite number.
func (o Object) Number(name string) (float64, error) {
	v, err := o.get(name, '0')
	if err != nil {
		return 0, err
	}
	var f float64
	if err := json.Unmarshal(v, &f); err != nil || math.IsInf(f, 0) {
		return 0, ShapeError("has a %q that is no finite number", name)
	}
	return f, nil
}

func (o Object) get(name string, kind jsontext.Kind) (jsontext.Value, error) {
	i := o.find(name)
	if i < 0 {
		return nil, ShapeError("lacks %q", name)
	}
	if o.members[i].value.Kind() != kind {
		noun := "string"
		if kind == '0' {
			noun = "number"
		}
		return nil, ShapeError("has a %q that is no %s", name, noun)
	}
	return o.members[i].value, nil
}

// Set gives a member a value, at its place if it has one, else at the end. v is a string or a number; anything else is
// a bug of the caller's and panics. Invalid UTF-8 in a string becomes U+FFFD: a host name is whatever bytes the system has.
func (o *Object) Set(name string, v any) {
	value := encoded(v)
	if i := o.find(name); i >= 0 {
		o.members[i].value = value
		return
	}
	o.members = append(o.members, member{name, value})
}

// encoded is v as JSON. What leases are made of is written without reflection.
func encoded(v any) jsontext.Value {
	switch v := v.(type) {
	case string:
		b, _ := jsontext.AppendQuote(nil, v) // the error only says that it had invalid UTF-8
		return b
	case uint64:
		return strconv.AppendUint(nil, v, 10)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// MarshalJSONTo writes the members in order.
func (o Object) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range o.members {
		if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := enc.WriteValue(m.value); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// Indented encodes the object as JSON.stringify(o, null, 2) of ECMAScript does, with a final newline.
func (o Object) Indented() []byte {
	if b, ok := o.flat(); ok {
		return b
	}
	b, err := json.Marshal(o, jsontext.WithIndent("  "))
	if err != nil {
		panic(err) // an Object holds only values that were checked
	}
	return append(b, '\n')
}

// flat is Indented for members that are written as they stand: numbers, words, and strings without escapes.
func (o Object) flat() ([]byte, bool) {
	b := append(make([]byte, 0, 512), '{')
	for i, m := range o.members {
		if kind := m.value.Kind(); kind == '{' || kind == '[' || bytes.IndexByte(m.value, '\\') >= 0 {
			return nil, false
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n  "...)
		b, _ = jsontext.AppendQuote(b, m.name)
		b = append(append(b, ": "...), m.value...)
	}
	return append(b, "\n}\n"...), len(o.members) > 0
}
