package fence

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"holdfast/pkg/procid"
	"holdfast/pkg/strictjson"
)

// The encoder writes every member as encoding by reflection does, so that a member that is added to Claim cannot be forgotten.
func TestEncodeIsWhatReflectionGives(t *testing.T) {
	cause := strictjson.Text("a \"cause\"\n\t\\ é \xed\xa0\xbd 😀 \u2028")
	end := &End{At: "a", Storage: StorageUnknown, Lease: Failed, EnvCleanup: envFailed, Cause: &cause}
	who := procid.Identity{PID: 4711, StartKey: "linux:1@?/2", Hostname: "höst\x01"}
	full := Claim{
		SchemaVersion: 2, Resource: "/r/\"x\"", Selected: Selected{"n", "/d", "/p"}, State: Reserved, Owner: who, Generation: "g",
		FirstParticipation: First{"at", "gen", FromFresh}, ReclaimedFrom: &Reclaimed{"g", Leased, who, Held},
		Reservation: &Reservation{"id", "n", "/c", "/r", "/p", "inc", leasePresent, Donor{"g", CloseFailed, who, Unknown, end, Selected{"n", "/d", ""}}},
		AdoptedFrom: &AdoptedRow{"g", who}, Lease: Unknown, End: end, WrittenAt: "w",
	}
	for name, c := range map[string]Claim{"full": full, "empty": {}} {
		want, err := json.Marshal(&c, strictjson.EncodeOptions(), jsontext.WithIndent("\t"))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Encode(); string(got) != string(want)+"\n" {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}
