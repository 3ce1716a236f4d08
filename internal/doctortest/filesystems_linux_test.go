package doctortest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/internal/testkit/fusekit"
)

// everythingHolds is what the check says of a filesystem on which the protocols may use everything.
const everythingHolds = "hard links, renames that replace nothing, and flock hold"

// mounts makes filesystems: each mounts itself at dir, of about size bytes and with about 1 000 inodes where they are counted.
var mounts = map[string]func(t *testing.T, dir string, size int64){
	"ext4":  func(t *testing.T, dir string, size int64) { loop(t, dir, size, "mkfs.ext4", "-q", "-m0", "-N1000") },
	"xfs":   func(t *testing.T, dir string, size int64) { loop(t, dir, size, "mkfs.xfs", "-q") },
	"btrfs": func(t *testing.T, dir string, size int64) { loop(t, dir, size, "mkfs.btrfs", "-q") },
	"tmpfs": func(t *testing.T, dir string, size int64) {
		mount(t, "tmpfs", dir, "tmpfs", "nr_inodes=1000,size="+strconv.FormatInt(size, 10))
	},
	"overlay": func(t *testing.T, dir string, size int64) {
		below := t.TempDir()
		mount(t, "tmpfs", below, "tmpfs", "nr_inodes=1000,size="+strconv.FormatInt(size, 10))
		for _, name := range []string{"lower", "upper", "work"} {
			must(t, os.Mkdir(filepath.Join(below, name), 0o755))
		}
		mount(t, "overlay", dir, "overlay", "lowerdir="+below+"/lower,upperdir="+below+"/upper,workdir="+below+"/work")
	},
}

// loop makes a filesystem in a file, and mounts it.
func loop(t *testing.T, dir string, size int64, mkfs ...string) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, size))
	run(t, append(mkfs, image)...)
	run(t, "mount", "-o", "loop", image, dir)
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

func mount(t *testing.T, source, dir, kind, options string) {
	t.Helper()
	must(t, unix.Mount(source, dir, kind, 0, options))
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

func run(t *testing.T, args ...string) {
	t.Helper()
	testkit.NeedTool(t, args[0])
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// said is the conditions that the check names of a directory, each with its detail.
func said(t *testing.T, dir string) map[string]string {
	t.Helper()
	o := doctor(t, "check", "--only", "filesystem", dir)
	if o.status != 0 {
		t.Fatalf("status %d: %s", o.status, o.stderr)
	}
	found := map[string]string{}
	for _, x := range o.objects {
		if x.Check != "filesystem" {
			continue
		}
		if x.Path != dir {
			t.Errorf("a finding about %s: %+v", x.Path, x)
		}
		found[x.Condition] = x.Detail
	}
	return found
}

// TestWhatIsSaidToHoldDoes tries on each filesystem what the check says of it: what holds there, that there is space, that it is
// full, that it cannot be written.
func TestWhatIsSaidToHoldDoes(t *testing.T) {
	testkit.NeedRoot(t)
	for kind, make := range mounts {
		t.Run(kind, func(t *testing.T) {
			testkit.OwnMounts(t)
			dir := t.TempDir()
			make(t, dir, 512<<20)

			first := said(t, dir)
			detail := first["local"]
			if len(first) != 1 || !strings.HasPrefix(detail, kind+": one kernel mounts it; "+everythingHolds+"; ") {
				t.Fatalf("%q", first)
			}
			if err := errors.Join(hardLink(dir), renameReplacesNothing(dir), flockExcludes(dir), stores(dir, 16<<20)); err != nil {
				t.Error(err)
			}

			fill(t, dir)
			full := said(t, dir)
			if _, warned := full["no-space"]; !warned || full["local"] == "" {
				t.Errorf("full: %q", full)
			}
			if err := stores(dir, 16<<20); !errors.Is(err, unix.ENOSPC) {
				t.Errorf("said to have no space, but a file of 16 MiB: %v", err)
			}

			must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
			if _, warned := said(t, dir)["read-only"]; !warned {
				t.Errorf("read-only: %q", said(t, dir))
			}
			if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); !errors.Is(err, unix.EROFS) {
				t.Errorf("said to be read-only, but a new file: %v", err)
			}
		})
	}
}

// TestNoInodesIsWhatItSays uses up the inodes of those filesystems that have a number of them.
func TestNoInodesIsWhatItSays(t *testing.T) {
	testkit.NeedRoot(t)
	for _, kind := range []string{"ext4", "tmpfs", "overlay"} {
		t.Run(kind, func(t *testing.T) {
			testkit.OwnMounts(t)
			dir := t.TempDir()
			mounts[kind](t, dir, 64<<20)
			for n := 0; ; n++ {
				err := os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), nil, 0o600)
				if errors.Is(err, unix.ENOSPC) {
					break
				}
				must(t, err)
			}
			found := said(t, dir)
			if found["no-inodes"] != "0 inodes are left" || found["no-space"] != "" {
				t.Errorf("%q", found)
			}
		})
	}
}

// TestOfAnUnknownFilesystemNothingIsPromised looks at one without links, without flags of renames and without flock.
func TestOfAnUnknownFilesystemNothingIsPromised(t *testing.T) {
	f := fusekit.Mount(t, fusekit.Options{Link: syscall.EPERM, RenameFlags: syscall.EINVAL, Lock: syscall.ENOSYS})
	found := said(t, f.Dir)
	detail := found["shared-filesystem"]
	if !strings.HasPrefix(detail, "fuse.fusekit: other machines may mount it") || strings.Contains(detail, everythingHolds) || found["local"] != "" {
		t.Errorf("%q", found)
	}
	if hardLink(f.Dir) == nil || renameReplacesNothing(f.Dir) == nil {
		t.Error("this filesystem was to have neither links nor flags of renames")
	}
}

func hardLink(dir string) error {
	name := filepath.Join(dir, "linked")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return err
	}
	return os.Link(name, name+"-too")
}

func renameReplacesNothing(dir string) error {
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := errors.Join(os.WriteFile(from, []byte("new"), 0o600), os.WriteFile(to, []byte("old"), 0o600)); err != nil {
		return err
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EEXIST) {
		return errors.Join(errors.New("a rename onto a file"), err)
	}
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to+"-free", unix.RENAME_NOREPLACE)
}

func flockExcludes(dir string) error {
	name := filepath.Join(dir, "locked")
	one, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer one.Close()
	two, err := os.Open(name)
	if err != nil {
		return err
	}
	defer two.Close()
	if err := unix.Flock(int(one.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if err := unix.Flock(int(two.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return errors.Join(errors.New("a second lock of one file"), err)
	}
	return nil
}

// stores puts size bytes into a file, and removes it.
func stores(dir string, size int64) error {
	f, err := os.Create(filepath.Join(dir, "written"))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	chunk := make([]byte, 1<<20)
	for at := int64(0); at < size && err == nil; at += int64(len(chunk)) {
		_, err = f.Write(chunk)
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// fill leaves no space.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	must(t, err)
	chunk := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(chunk)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}
