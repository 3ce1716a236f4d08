package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"holdfast/pkg/procid"
	"holdfast/pkg/strictjson"
)

// The schemas of the files.
const (
	schemaRegistryFormat = "holdfast-registry-format/1"
	schemaRegistry       = "holdfast-registry/1"
	schemaServiceFormat  = "holdfast-service-format/1"
	schemaConfig         = "holdfast-service-config/1"
	schemaRegistration   = "holdfast-service-registration/1"
	schemaOwnerLock      = "holdfast-service-owner-lock/1"
	schemaCapability     = "holdfast-service-local-capability/1"
	schemaReceipt        = "holdfast-service-receipt/1"
)

// The limits of the registry, and of what stands in it.
const (
	MaxEntries   = 4096
	maxRootsFile = 4 << 20  // bytes
	maxFile      = 64 << 10 // bytes
	maxPath      = 4096     // bytes
	maxHost      = 255      // bytes
)

// Phase says how far a service is, by its own word.
type Phase string

// The phases.
const (
	Idle        Phase = "idle"
	Stopping    Phase = "stopping"
	Quarantined Phase = "quarantined"
	Stopped     Phase = "stopped"
)

// registryFormat is registry/format.json.
type registryFormat struct {
	Schema    string `json:"schema"`
	StateHome string `json:"stateHome"`
}

// rootsFile is registry/roots.json.
type rootsFile struct {
	Schema  string        `json:"schema"`
	Entries []Reservation `json:"entries"`
}

// Reservation is a row of the registry: which service owns a root, at which endpoint, in which epoch.
type Reservation struct {
	Root           string `json:"root"`
	StateHome      string `json:"stateHome"`
	ConfigIdentity string `json:"configIdentity"` // SHA-256 of config.json, hex
	Endpoint       string `json:"endpoint"`       // bound
	Epoch          string `json:"epoch"`          // UUID
	PID            int    `json:"pid"`
	StartKey       string `json:"startKey"`
	Host           string `json:"host"`
	OwnerToken     string `json:"ownerToken"` // UUID
}

// Owner is the process that the row names.
func (r Reservation) Owner() procid.Identity {
	return procid.Identity{PID: r.PID, StartKey: r.StartKey, Hostname: r.Host}
}

// serviceFormat is roots/<id>/format.json.
type serviceFormat struct {
	Schema         string `json:"schema"`
	Root           string `json:"root"`
	StateHome      string `json:"stateHome"`
	ConfigIdentity string `json:"configIdentity"`
}

// configFile is roots/<id>/config.json.
type configFile struct {
	Schema         string `json:"schema"`
	Endpoint       string `json:"endpoint"` // as requested; the port may be 0
	PolicyIdentity string `json:"policyIdentity"`
}

// Registration is roots/<id>/registration.json.
type Registration struct {
	Schema string `json:"schema"`
	Reservation
	CheckoutToken string `json:"checkoutToken"` // UUID
	RootStamp     string `json:"rootStamp"`     // dev:ino of the root
	Phase         Phase  `json:"phase"`
}

// ownerLock is roots/<id>/owner.lock.
type ownerLock struct {
	Schema   string `json:"schema"`
	Epoch    string `json:"epoch"`
	Token    string `json:"token"`
	PID      int    `json:"pid"`
	StartKey string `json:"startKey"`
	Host     string `json:"host"`
}

// capabilityFile is roots/<id>/local-capability.json.
type capabilityFile struct {
	Schema     string `json:"schema"`
	Epoch      string `json:"epoch"`
	Capability string `json:"capability"` // 43 characters base64url of 32 random bytes
}

// checkoutLock is roots/<id>/checkout.lock, which older single-process writers take as well.
type checkoutLock struct {
	Token    string `json:"token"`
	PID      int    `json:"pid"`
	StartKey string `json:"startKey"`
	Host     string `json:"host"`
	Since    string `json:"since"`
}

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// encode is the bytes of a file: compact JSON in the order of the keys, and a newline.
func encode(v any) []byte {
	b, err := strictjson.Line(v)
	if err != nil {
		panic(err) // nothing in these types can fail to encode
	}
	return b
}

// decode reads a file of a closed schema. Only the very bytes that encode gives are accepted: nobody else writes here. The
// error is a *strictjson.Error.
func decode[T interface{ check() error }](b []byte, v *T) error {
	if err := strictjson.Decode(b, v); err != nil {
		return err
	}
	if err := (*v).check(); err != nil {
		return err
	}
	if !bytes.Equal(b, encode(*v)) {
		return strictjson.ShapeError("is not in the form that it is written in")
	}
	return nil
}

// checker collects the first thing that is wrong.
type checker struct{ err *strictjson.Error }

func (k *checker) that(ok bool, what string) {
	if !ok && k.err == nil {
		k.err = strictjson.ShapeError("has %s", what)
	}
}

func (k *checker) result() error {
	if k.err == nil {
		return nil
	}
	return k.err
}

func (k *checker) schema(got, want string) { k.that(got == want, "another schema than "+want) }

func (k *checker) owner(pid int, startKey, host string) {
	k.that(pid >= 1 && pid <= 1<<31-1, "a pid that no process has")
	k.that(startKey != "" && len(startKey) <= maxHost, "no usable startKey")
	k.that(host != "" && len(host) <= maxHost && printable(host), "no usable host")
}

func (f registryFormat) check() error {
	k := &checker{}
	k.schema(f.Schema, schemaRegistryFormat)
	k.that(validPath(f.StateHome), "no usable stateHome")
	return k.result()
}

func (f rootsFile) check() error {
	k := &checker{}
	k.schema(f.Schema, schemaRegistry)
	k.that(f.Entries != nil, "no entries")
	k.that(len(f.Entries) <= MaxEntries, "too many entries")
	for _, r := range f.Entries {
		k.reservation(r)
	}
	return k.result()
}

func (k *checker) reservation(r Reservation) {
	k.that(validPath(r.Root), "an entry without a usable root")
	k.that(validPath(r.StateHome), "an entry without a usable stateHome")
	k.that(hex64(r.ConfigIdentity), "an entry whose configIdentity is not 64 hex digits")
	e, ok := ParseEndpoint(r.Endpoint)
	k.that(ok && e.Port != 0, "an entry without a bound endpoint")
	k.that(validUUID(r.Epoch) && validUUID(r.OwnerToken), "an entry whose epoch or ownerToken is no UUID")
	k.owner(r.PID, r.StartKey, r.Host)
}

func (f serviceFormat) check() error {
	k := &checker{}
	k.schema(f.Schema, schemaServiceFormat)
	k.that(validPath(f.Root) && validPath(f.StateHome), "no usable root or stateHome")
	k.that(hex64(f.ConfigIdentity), "a configIdentity that is not 64 hex digits")
	return k.result()
}

func (f configFile) check() error {
	k := &checker{}
	k.schema(f.Schema, schemaConfig)
	_, ok := ParseEndpoint(f.Endpoint)
	k.that(ok, "no usable endpoint")
	k.that(hex64(f.PolicyIdentity), "a policyIdentity that is not 64 hex digits")
	return k.result()
}

func (f Registration) check() error {
	k := &checker{}
	k.schema(f.Schema, schemaRegistration)
	k.reservation(f.Reservation)
	k.that(validUUID(f.CheckoutToken), "a checkoutToken that is no UUID")
	k.that(validStamp(f.RootStamp), "a rootStamp that is not dev:ino")
	k.that(slices.Contains([]Phase{Idle, Stopping, Quarantined, Stopped}, f.Phase), "an unknown phase")
	return k.result()
}

func (f ownerLock) check() error {
	k := &checker{}
	k.schema(f.Schema, schemaOwnerLock)
	k.that(validUUID(f.Epoch) && validUUID(f.Token), "an epoch or token that is no UUID")
	k.owner(f.PID, f.StartKey, f.Host)
	return k.result()
}

func (f capabilityFile) check() error {
	k := &checker{}
	k.schema(f.Schema, schemaCapability)
	k.that(validUUID(f.Epoch), "an epoch that is no UUID")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(f.Capability)
	k.that(err == nil && len(raw) == 32, "a capability that is none")
	return k.result()
}

func (f checkoutLock) check() error {
	k := &checker{}
	k.that(validUUID(f.Token), "a token that is no UUID")
	k.owner(f.PID, f.StartKey, f.Host)
	_, err := time.Parse(timeLayout, f.Since)
	k.that(err == nil, "a since that is no time")
	return k.result()
}

func validPath(p string) bool {
	return path.IsAbs(p) && path.Clean(p) == p && len(p) <= maxPath && printable(p)
}

// printable reports whether s is UTF-8 without control characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// ValidPolicy reports whether text is a policy's identity: 64 lower-case hex digits.
func ValidPolicy(text string) bool { return hex64(text) }

func hex64(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

func validUUID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}

func validStamp(s string) bool {
	dev, ino, ok := strings.Cut(s, ":")
	return ok && number(dev) && number(ino)
}

func number(s string) bool {
	n, err := strconv.ParseUint(s, 10, 64)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// identityOf is the SHA-256 of bytes, in lower-case hex.
func identityOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// RootID names a root's directory: the first 32 hex digits of the SHA-256 of its physical path.
func RootID(root string) string { return identityOf([]byte(root))[:32] }
