package fence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// jsObject is a JSON object as ECMAScript has it: its members in the order they were set. These tests write claims with it,
// so that nothing of the package's own encoder stands behind what its decoder is given.
type jsObject []jsMember

type jsMember struct {
	name  string
	value any // string, int, jsRaw or jsObject
}

// jsRaw is a value that is written as it stands.
type jsRaw string

// js makes an object of names and values in turn.
func js(pairs ...any) jsObject {
	var o jsObject
	for i := 0; i < len(pairs); i += 2 {
		o = append(o, jsMember{pairs[i].(string), pairs[i+1]})
	}
	return o
}

func (o jsObject) clone() jsObject {
	out := make(jsObject, len(o))
	for i, m := range o {
		if inner, ok := m.value.(jsObject); ok {
			m.value = inner.clone()
		}
		out[i] = m
	}
	return out
}

// edit returns a copy in which the object that has the last name of a dotted path was given to change.
func (o jsObject) edit(path string, change func(o jsObject, name string) jsObject) jsObject {
	first, rest, nested := strings.Cut(path, ".")
	out := o.clone()
	if !nested {
		return change(out, first)
	}
	i := out.index(first)
	out[i].value = out[i].value.(jsObject).edit(rest, change)
	return out
}

func (o jsObject) index(name string) int {
	for i, m := range o {
		if m.name == name {
			return i
		}
	}
	return -1
}

// with sets a member, at its place when it is there and else before writtenAt or at the end.
func (o jsObject) with(path string, value any) jsObject {
	return o.edit(path, func(o jsObject, name string) jsObject {
		if i := o.index(name); i >= 0 {
			o[i].value = value
			return o
		}
		if last := len(o) - 1; last >= 0 && o[last].name == "writtenAt" {
			return append(o[:last:last], jsMember{name, value}, o[last])
		}
		return append(o, jsMember{name, value})
	})
}

func (o jsObject) without(path string) jsObject {
	return o.edit(path, func(o jsObject, name string) jsObject {
		i := o.index(name)
		return append(o[:i:i], o[i+1:]...)
	})
}

func (o jsObject) renamed(path, to string) jsObject {
	return o.edit(path, func(o jsObject, name string) jsObject {
		o[o.index(name)].name = to
		return o
	})
}

// twice repeats a member at once, with the same value.
func (o jsObject) twice(path string) jsObject {
	return o.edit(path, func(o jsObject, name string) jsObject {
		i := o.index(name)
		return append(o[:i+1:i+1], o[i:]...)
	})
}

func (o jsObject) get(path string) any {
	first, rest, nested := strings.Cut(path, ".")
	i := o.index(first)
	if i < 0 {
		return nil
	}
	if !nested {
		return o[i].value
	}
	return o[i].value.(jsObject).get(rest)
}

// paths lists every member, those of inner objects as dotted paths.
func (o jsObject) paths() []string {
	var all []string
	for _, m := range o {
		all = append(all, m.name)
		if inner, ok := m.value.(jsObject); ok {
			for _, p := range inner.paths() {
				all = append(all, m.name+"."+p)
			}
		}
	}
	return all
}

// stringify is JSON.stringify(o, null, "\t") + "\n".
func (o jsObject) stringify() string { return jsText(o, "\n") + "\n" }

func jsText(v any, newline string) string {
	switch v := v.(type) {
	case jsRaw:
		return string(v)
	case int:
		return fmt.Sprint(v)
	case string:
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			panic(err)
		}
		return strings.TrimSuffix(b.String(), "\n")
	case jsObject:
		if len(v) == 0 {
			return "{}"
		}
		members := make([]string, len(v))
		for i, m := range v {
			members[i] = newline + "\t" + jsText(m.name, "") + ": " + jsText(m.value, newline+"\t")
		}
		return "{" + strings.Join(members, ",") + newline + "}"
	}
	panic(fmt.Sprintf("%T is no value of these tests", v))
}
