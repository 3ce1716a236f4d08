package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Rows whose services have no files left are uncertain, each of them: the registry is not read once more for each. Reading 3000 rows
// 3000 times takes a minute.
func TestAListOfUncertainRowsReadsTheRegistryFewTimes(t *testing.T) {
	t.Parallel()
	const rows = 3000
	w := newWorld(t)
	for _, dir := range []string{"", registryDir, rootsDir, stageDir, receiptsDir} {
		if err := os.MkdirAll(filepath.Join(w.path, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	entries := make([]string, rows)
	for i := range entries {
		entries[i] = fmt.Sprintf(`{"root":"/nowhere/%04d","stateHome":%q,"configIdentity":"%064d","endpoint":"http://127.0.0.1:%d","epoch":"aaaaaaaa-0000-4000-8000-%012d","pid":1,"startKey":"linux:1@01234567-89ab-4cde-8f01-23456789abcd/1","host":"h","ownerToken":"bbbbbbbb-0000-4000-8000-%012d"}`,
			i, w.path, 0, 10000+i, i, i)
	}
	for name, text := range map[string]string{
		"format.json": fmt.Sprintf(`{"schema":"holdfast-registry-format/1","stateHome":%q}`, w.path),
		rootsName:     `{"schema":"holdfast-registry/1","entries":[` + strings.Join(entries, ",") + `]}`,
	} {
		if err := os.WriteFile(filepath.Join(w.path, registryDir, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := w.open(testOptions())
	started, n := time.Now(), 0
	err := h.List(func(in Inspection, row Reservation) error {
		if want := fmt.Sprintf("/nowhere/%04d", n); in.State != StateUncertain || in.Err == nil || row.Root != want {
			t.Errorf("%s is %s, not %s uncertain: %v", row.Root, in.State, want, in.Err)
		}
		n++
		return nil
	})
	if err != nil || n != rows {
		t.Errorf("%d rows: %v", n, err)
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
