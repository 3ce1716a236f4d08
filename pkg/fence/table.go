package fence

import "slices"

// ending is one line of the table of what a claim may say: which leases go with a state, and which ends of storage.
type ending struct {
	states  []State
	leases  []Lease
	storage []Storage // empty: there is no end
	plain   bool      // in schema 3 only
}

// endings is the table. What it does not list is malformed.
var endings = []ending{
	{states: []State{Reserved, Fenced}, leases: []Lease{NeverHeld}},
	{states: []State{Leased, StorageOpen}, leases: []Lease{Held}},
	{states: []State{Closed}, leases: []Lease{Released}, storage: []Storage{StorageClosed, NeverOpened}},
	{states: []State{Closed}, leases: []Lease{NeverHeld}, storage: []Storage{NeverOpened}},
	{states: []State{CloseFailed}, leases: []Lease{Released, Failed, Unknown}, storage: []Storage{StorageFailed, StorageUnknown}},
	{states: []State{CloseFailed}, leases: []Lease{Failed, Unknown}, storage: []Storage{StorageClosed, NeverOpened}},
	{states: []State{Leased, StorageOpen}, leases: []Lease{NeverHeld}, plain: true},
	{states: []State{Closed}, leases: []Lease{NeverHeld}, storage: []Storage{StorageClosed}, plain: true},
	{states: []State{CloseFailed}, leases: []Lease{NeverHeld}, storage: []Storage{StorageFailed, StorageUnknown}, plain: true},
}

// tabled reports whether the combination is in the table for a schema.
func tabled(schema int, state State, lease Lease, end *End) bool {
	return slices.ContainsFunc(endings, func(e ending) bool {
		if e.plain && schema != SchemaPlain || !slices.Contains(e.states, state) || !slices.Contains(e.leases, lease) {
			return false
		}
		if end == nil || len(e.storage) == 0 {
			return end == nil && len(e.storage) == 0
		}
		return slices.Contains(e.storage, end.Storage)
	})
}
