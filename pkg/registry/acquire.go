package registry

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"

	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// Acquire asks for a root and an endpoint to be a service's.
type Acquire struct {
	Root      string // a directory
	Requested string // the endpoint that the root is configured for; the port may be 0
	Bound     string // the endpoint that the service has; empty: the requested one
	Policy    string // 64 hex digits, or empty
	Owner     procid.Identity
	Receipt   string // path; empty: below the state home
	Epoch     string // a UUID; empty: a new one
}

// Acquired is a service that owns its root.
type Acquired struct {
	Registration Registration
	Receipt      string // path
}

// Acquire registers a service. Errors: *Refusal, *regfile.Error. A refusal initialises nothing; a failure in the middle keeps
// the registry lock.
func (h *Home) Acquire(ctx context.Context, req Acquire) (*Acquired, error) {
	root, err := newRoot(req.Root)
	if err != nil {
		return nil, err
	}
	bound, err := req.endpoints()
	if err != nil {
		return nil, err
	}
	var out *Acquired
	err = h.lock(ctx, "acquire", root.path, func(l *locked) error {
		out, err = l.acquire(req, root, bound)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// endpoints is the bound endpoint, which has to answer the requested one.
func (req *Acquire) endpoints() (Endpoint, error) {
	requested, ok := ParseEndpoint(req.Requested)
	if !ok {
		return Endpoint{}, invalidEndpoint(req.Requested)
	}
	if req.Bound == "" {
		req.Bound = req.Requested
	}
	bound, ok := ParseEndpoint(req.Bound)
	switch {
	case !ok:
		return Endpoint{}, invalidEndpoint(req.Bound)
	case bound.Port == 0:
		return Endpoint{}, conflict(req.Bound, "leaves the port open: say with --bound which one the service has")
	case !bound.Matches(requested):
		return Endpoint{}, conflict(req.Bound, "does not answer the requested endpoint %s", req.Requested)
	}
	return bound, nil
}

func invalidEndpoint(text string) error {
	return &Refusal{Code: CodeConflict, Path: text, How: "is no loopback endpoint: write http://127.0.0.1:PORT or http://[::1]:PORT"}
}

// rootDir is a root directory that is there.
type rootDir struct {
	path  string // physical
	place inode
}

func newRoot(path string) (rootDir, error) {
	real, err := absolute(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return rootDir{}, &Refusal{Code: CodeRootInvalid, Path: path, How: "is no directory that can be registered", Err: bare(err)}
	}
	st, err := regfile.Lstat(real)
	switch {
	case err != nil:
		return rootDir{}, err
	case st.Kind != regfile.Directory:
		return rootDir{}, &Refusal{Code: CodeRootInvalid, Path: path, How: "is " + st.Kind.Noun() + ", not a directory"}
	case !validPath(real):
		return rootDir{}, &Refusal{Code: CodeRootInvalid, Path: path, How: "has a physical path that a registry cannot record"}
	}
	return rootDir{real, inode{st.Dev, st.Ino}}, nil
}

func (l *locked) acquire(req Acquire, root rootDir, bound Endpoint) (*Acquired, error) {
	reg, err := l.registryLocked()
	if err != nil {
		return nil, err
	}
	if err := l.vacant(reg, root, bound); err != nil {
		return nil, err
	}
	state, err := l.readRoot(root.path)
	if err != nil {
		return nil, err
	}
	defer state.close()
	config, err := l.config(state, req)
	if err != nil {
		return nil, err
	}
	registration, err := l.registration(req, root, bound, identityOf(encode(config)))
	if err != nil {
		return nil, err
	}
	rows := append(append([]Reservation{}, reg.Rows...), registration.Reservation)
	content, err := l.acquireContent(config, registration, rows)
	if err != nil {
		return nil, err
	}
	receiptPath, err := l.receiptPath(req.Receipt, registration)
	if err != nil {
		return nil, err
	}
	op, err := l.operation(reg, state)
	if err != nil {
		return nil, err
	}
	defer op.root.Close()
	op.content = content
	if err := reserveReceipt(receiptPath, registration); err != nil {
		return nil, err
	}
	if err := op.run(AcquireOrder); err != nil {
		_ = removeReceipt(receiptPath) // it proves nothing
		return nil, err
	}
	return l.acquired(op, registration, receiptPath)
}

// acquired verifies everything by reading it again, and writes the receipt.
func (l *locked) acquired(op *operation, want Registration, receiptPath string) (*Acquired, error) {
	state, err := l.verified(want)
	if err != nil {
		return nil, err
	}
	defer state.close()
	r := newReceipt(want, state.files)
	if err := writeReceipt(receiptPath, r); err != nil {
		return nil, err
	}
	return &Acquired{Registration: want, Receipt: receiptPath}, nil
}

// verified reads registry and root again and refuses unless they hold exactly this registration.
func (l *locked) verified(want Registration) (*rootState, error) {
	reg, err := l.registryLocked()
	if err != nil {
		return nil, err
	}
	if row := reg.row(want.Root); row == nil || *row != want.Reservation {
		return nil, uncertain(l.registry.Join(rootsName), "does not hold the row that was written")
	}
	state, err := l.readRoot(want.Root)
	if err != nil {
		return nil, err
	}
	if state.registration == nil || *state.registration != want {
		state.close()
		return nil, uncertain(filepath.Join(l.path, rootsDir, RootID(want.Root)), "does not hold the registration that was written")
	}
	return state, nil
}

// taken completes a conflict with the row that is in the way, and its owner's verdict.
func (l *locked) taken(r *Refusal, row *Reservation) error {
	v := l.opts.Judge(row.Owner(), l.isLocal())
	r.Row, r.Verdict = row, &v
	return r
}

// vacant refuses a root or an endpoint that a row has, and a full registry.
func (l *locked) vacant(reg *Registry, root rootDir, bound Endpoint) error {
	row, relation, err := conflictingRow(root.path, reg.Rows)
	if err != nil {
		return err
	}
	if row != nil {
		r := conflict(root.path, "is %s %s, which a service owns", relation, regfile.Printable(row.Root))
		return l.taken(r, row)
	}
	for i := range reg.Rows {
		if reg.Rows[i].Endpoint == bound.String() {
			r := conflict(bound.String(), "is the endpoint of %s", regfile.Printable(reg.Rows[i].Root))
			return l.taken(r, &reg.Rows[i])
		}
	}
	if len(reg.Rows) >= MaxEntries {
		return &Refusal{Code: CodeCapacity, Path: l.registry.Join(rootsName), How: fmt.Sprintf("has %d rows, and no more fit", MaxEntries)}
	}
	return nil
}

// config is the configuration of the root: the stored one, which the request must not contradict, or a new one.
func (l *locked) config(state *rootState, req Acquire) (configFile, error) {
	at := func(name string) string { return filepath.Join(l.path, rootsDir, state.id, name) }
	if r := state.registration; r != nil && r.Phase != Stopped {
		v := l.opts.Judge(r.Owner(), l.dir.IsLocal())
		return configFile{}, &Refusal{Code: CodeQuarantine, Path: at(registrationFile), Verdict: &v,
			How: fmt.Sprintf("is %s, without a row in the registry: its service did not end", r.Phase)}
	}
	if state.checkout != nil {
		return configFile{}, conflict(at(checkoutName), "is there: another writer has the root, pid %d on %s", state.checkout.PID, regfile.Printable(state.checkout.Host))
	}
	policy := req.Policy
	hosts := state.files[hostConfigFile]
	switch {
	case policy == "" && hosts != nil:
		policy = hosts.Identity
	case policy == "" && state.config != nil:
		policy = state.config.PolicyIdentity
	case policy == "":
		policy = strings.Repeat("0", 64)
	}
	switch c := (configFile{schemaConfig, req.Requested, policy}); {
	case !hex64(policy):
		return configFile{}, conflict(req.Policy, "is no policy identity: 64 lower-case hex digits")
	case hosts != nil && hosts.Identity != policy:
		return configFile{}, conflict(at(hostConfigFile), "is not the policy that was given")
	case state.config != nil && *state.config != c:
		return configFile{}, otherConfig(state, *state.config)
	default:
		return c, nil
	}
}

func otherConfig(state *rootState, c configFile) error {
	return conflict(state.dir.Join(configName), "has endpoint %s and policy %s, not the ones asked for", c.Endpoint, c.PolicyIdentity)
}

func (l *locked) registration(req Acquire, root rootDir, bound Endpoint, config string) (Registration, error) {
	if req.Epoch == "" {
		req.Epoch = l.opts.NewID()
	}
	r := Registration{
		Schema: schemaRegistration,
		Reservation: Reservation{
			Root: root.path, StateHome: l.path, ConfigIdentity: config, Endpoint: bound.String(), Epoch: req.Epoch,
			PID: req.Owner.PID, StartKey: req.Owner.StartKey, Host: req.Owner.Hostname, OwnerToken: l.opts.NewID(),
		},
		CheckoutToken: l.opts.NewID(), RootStamp: root.place.String(), Phase: Idle,
	}
	if err := r.check(); err != nil {
		return r, &Refusal{Code: CodeConflict, Path: root.path, How: "cannot be registered", Err: err}
	}
	return r, nil
}

// acquireContent is what each step writes.
func (l *locked) acquireContent(config configFile, r Registration, rows []Reservation) (map[string][]byte, error) {
	roots := encode(rootsFile{schemaRegistry, rows})
	if len(roots) > maxRootsFile {
		return nil, &Refusal{Code: CodeCapacity, Path: l.registry.Join(rootsName), How: fmt.Sprintf("would be larger than %d bytes", maxRootsFile)}
	}
	secret := make([]byte, 32)
	if err := l.opts.Rand(secret); err != nil {
		return nil, err
	}
	return map[string][]byte{
		"registry-format": encode(registryFormat{schemaRegistryFormat, l.path}),
		"row":             roots,
		"config":          encode(config),
		"format":          encode(serviceFormat{schemaServiceFormat, r.Root, l.path, r.ConfigIdentity}),
		"checkout-lock":   encode(checkoutLock{r.CheckoutToken, r.PID, r.StartKey, r.Host, formatTime(l.opts.Now())}),
		"owner-lock":      encode(ownerLock{schemaOwnerLock, r.Epoch, r.OwnerToken, r.PID, r.StartKey, r.Host}),
		"capability":      encode(capabilityFile{schemaCapability, r.Epoch, base64.RawURLEncoding.EncodeToString(secret)}),
		"registration":    encode(r),
	}, nil
}

// operation prepares an order on a root, whose directory is made when it is missing: an empty one says nothing.
func (l *locked) operation(reg *Registry, state *rootState) (*operation, error) {
	path := filepath.Join(l.path, rootsDir, state.id)
	if err := makeDirectory(path); err != nil {
		return nil, err
	}
	dir, err := regfile.OpenDir(path)
	if err != nil {
		return nil, err
	}
	op := &operation{locked: l, registry: l.registry, root: dir, known: map[string]*Snapshot{}}
	op.known[filepath.Join(registryDir, formatFile)] = reg.format
	op.known[filepath.Join(registryDir, rootsName)] = reg.roots
	for _, name := range readNames {
		op.known[filepath.Join(rootsDir, name)] = state.files[name]
	}
	return op, nil
}
