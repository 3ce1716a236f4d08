package strictjson

import "testing"

type sample struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Inner struct {
		On bool `json:"on"`
	} `json:"inner"`
}

func TestDecodeIsClosedAndDecodeOpenIsNot(t *testing.T) {
	for _, c := range []struct {
		name, text       string
		closed, open     bool // accepted
		closedAt, openAt int64
		wantName         string
	}{
		{name: "every member", text: `{"name":"n","count":2,"inner":{"on":true}}`, closed: true, open: true, wantName: "n"},
		{name: "members in another order", text: `{"count":2,"name":"n"}`, closed: true, open: true, wantName: "n"},
		{name: "no member", text: `{}`, closed: true, open: true},
		{name: "an unknown member", text: `{"name":"n","more":[1,{"x":2}]}`, closedAt: 12, open: true, wantName: "n"},
		{name: "an unknown member inside", text: `{"name":"n","inner":{"off":1}}`, closedAt: 21, open: true, wantName: "n"},
		{name: "a name in other letters", text: `{"Name":"n"}`, closedAt: 1, open: true},
		{name: "a number for a string", text: `{"name":1}`, closedAt: 8, openAt: 8},
		{name: "a string for a number", text: `{"count":"2"}`, closedAt: 9, openAt: 9},
		{name: "a fraction for an integer", text: `{"count":1.5}`, closedAt: 9, openAt: 9},
		{name: "an integer too large", text: `{"count":99999999999999999999}`, closedAt: 9, openAt: 9},
		{name: "an array for an object", text: `{"inner":[]}`, closedAt: 9, openAt: 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v sample
			if err := Decode([]byte(c.text), &v); !c.closed {
				expect(t, err, Shape, c.closedAt)
			} else if err != nil || v.Name != c.wantName {
				t.Errorf("Decode: %+v, %v", v, err)
			}
			v = sample{}
			if err := DecodeOpen([]byte(c.text), &v); !c.open {
				expect(t, err, Shape, c.openAt)
			} else if err != nil || v.Name != c.wantName {
				t.Errorf("DecodeOpen: %+v, %v", v, err)
			}
		})
	}
}

func TestADuplicateIsRefusedEvenInsideAnIgnoredMember(t *testing.T) {
	var v sample
	expect(t, DecodeOpen([]byte(`{"more":{"x":1,"x":2}}`), &v), DuplicateKey, 15)
}

func TestLineIsOneLineWhateverItHolds(t *testing.T) {
	b, err := Line(sample{Name: "a\nb\x00\xff\u2028\"\\"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"name":"a\nb\u0000` + "\ufffd\u2028" + `\"\\","count":0,"inner":{"on":false}}` + "\n"
	if string(b) != want {
		t.Errorf("%q, want %q", b, want)
	}
}
