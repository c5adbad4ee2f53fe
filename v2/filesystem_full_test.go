//go:build linux

package holdfast

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest/mount"
	"example.com/holdfast/queue"
)

// A fullFilesystem is one that can be filled.
type fullFilesystem struct {
	mount.Kind
	errno unix.Errno

	// inside bounds what a directory in it may hold, and gives that directory.
	inside func(t *testing.T, dir string) string

	// mayRefuse: settling may take more room here than the reserve gives, for a copy-on-write
	// filesystem promises nothing about a full disk.
	mayRefuse bool
}

var fullFilesystems = []fullFilesystem{
	{Kind: mount.Ext4.Sized(16 << 20), errno: unix.ENOSPC},
	{Kind: smallTmpfs(), errno: unix.ENOSPC},
	{Kind: mount.XFS, errno: unix.ENOSPC},
	{Kind: mount.Btrfs, errno: unix.ENOSPC, mayRefuse: true},
	{Kind: quotaBtrfs(), errno: unix.EDQUOT, inside: limitedTree, mayRefuse: true},
}

func smallTmpfs() mount.Kind {
	k := mount.Tmpfs
	k.Options = "size=4m,mode=755"
	return k
}

func quotaBtrfs() mount.Kind {
	k := mount.Btrfs
	k.Name = "btrfs-quota"
	return k
}

// limitedTree makes a tree of a btrfs that may hold so much and no more.
func limitedTree(t *testing.T, dir string) string {
	t.Helper()
	in := filepath.Join(dir, "limited")
	for _, args := range [][]string{
		{"quota", "enable", dir},
		{"subvolume", "create", in},
		{"qgroup", "limit", "12M", in},
	} {
		if out, err := exec.CommandContext(t.Context(), "btrfs", args...).CombinedOutput(); err != nil {
			t.Fatalf("btrfs %q: %v\n%s", args, err, out)
		}
	}
	return in
}

// fullMargins are the bytes that are left free.
var fullMargins = []int64{0, 4 << 10, 20 << 10, 64 << 10, 160 << 10, 512 << 10}

// A real disk runs full, to the last byte or nearly, and is then worked on until an enqueue
// is refused. Whatever is claimed can be settled; when there is room again, all goes on.
func TestFullFilesystem(t *testing.T) {
	thorough(t)
	full := firstOf(fullFilesystems...)
	var kinds []mount.Kind
	of := map[string]fullFilesystem{}
	for _, f := range full {
		kinds = append(kinds, f.Kind)
		of[f.Name] = f
	}
	onEach(t, kinds, func(t *testing.T, k mount.Kind) {
		f := of[k.Name]
		dir := mount.NewPlace(t).Mount(k).Dir
		if f.inside != nil {
			mount.NeedTool(t, "btrfs")
			dir = f.inside(t, dir)
		}
		for _, margin := range fullMargins {
			t.Run(fmt.Sprint(margin), func(t *testing.T) { f.fullBut(t, dir, margin) })
		}
	})
}

// fullBut fills the filesystem but for margin bytes, with a store in it that has messages
// claimed.
func (f fullFilesystem) fullBut(t *testing.T, dir string, margin int64) {
	ctx := t.Context()
	o := &Options{MinFreeBytes: -1}
	set := ownHolders(&o)
	defer set.die()
	at := filepath.Join(dir, fmt.Sprint("store", margin))
	s, err := Create(ctx, at, o)
	mustDo(t, err)
	defer s.Close()
	mustEnqueue(t, s, "mail", smalls(14)...)
	held := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 12, Lease: queue.NoDeadline})
	filler := filepath.Join(dir, "filler")
	fill(t, filler, margin)

	accepted := 0
	for err = nil; err == nil; accepted++ {
		if accepted > 4096 {
			t.Fatal("it does not run full")
		}
		_, err = s.Enqueue(ctx, "mail", small(fmt.Sprint("more", accepted)))
	}
	accepted--
	if !errors.Is(err, queue.ErrFull) || !errors.Is(err, f.errno) {
		t.Errorf("enqueue: %v, want %v and %v", err, queue.ErrFull, f.errno)
	}
	refused := 0
	for i, d := range held {
		err := settleNth(t, s, i, d.Receipt)
		if f.mayRefuse && errors.Is(err, f.errno) && !errors.Is(err, queue.ErrUncertain) {
			refused++
			err = settleLater(t, s, filler, i, d.Receipt)
		}
		if err != nil {
			t.Errorf("settling number %d: %v", i, err)
		}
	}
	t.Logf("%d enqueues accepted, %d of %d settlements refused", accepted, refused, len(held))
	f.mustHold(t, s, accepted)

	// The floor refuses before the disk does.
	if refused == 0 && f.inside == nil {
		floor, err := Open(ctx, at, nil)
		mustDo(t, err)
		defer floor.Close()
		if _, err := floor.Enqueue(ctx, "mail", small("below")); !errors.Is(err, queue.ErrFull) || errors.Is(err, f.errno) {
			t.Errorf("enqueue below the floor: %v", err)
		}
	}
	if err := os.Remove(filler); refused == 0 && err != nil {
		t.Fatal(err)
	}
	mustEnqueue(t, s, "mail", small("again"))
	f.mustHold(t, s, accepted+1)
	if info, err := os.Stat(filepath.Join(at, namespaceDir, reserveFile)); err != nil || info.Size() < minReserve {
		t.Errorf("the reserve: %v, %v", info, err)
	}
	mustDo(t, os.RemoveAll(at))
}

// settleNth ends a claim in one of the ways there are.
func settleNth(t *testing.T, s *Store, n int, r queue.Receipt) (err error) {
	switch n % 3 {
	case 0:
		err = s.Ack(t.Context(), r)
	case 1:
		_, err = s.Fail(t.Context(), r, queue.FailOptions{Cause: "a full disk"})
	case 2:
		err = s.Release(t.Context(), r, queue.ReleaseOptions{})
	}
	return err
}

// settleLater does so after the filler has gone.
func settleLater(t *testing.T, s *Store, filler string, n int, r queue.Receipt) error {
	if err := os.Remove(filler); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return settleNth(t, s, n, r)
}

// mustHold checks that the store holds what it must after its twelve claims were settled:
// the two that waited, the four released, and what was accepted since.
func (f fullFilesystem) mustHold(t *testing.T, s *Store, accepted int) {
	t.Helper()
	st, err := s.Status(t.Context(), queue.StatusOptions{Queues: []string{"mail"}})
	q := st.Queues["mail"]
	if err != nil || q.Pending != uint64(6+accepted) || q.Processing != 0 || q.Failed != 4 || q.Counters.Completed != 4 {
		t.Errorf("status: %+v, %v", q, err)
	}
	r, err := s.Verify(t.Context(), VerifyOptions{})
	if err != nil || !r.OK || !r.Settled || r.Temps != 0 {
		t.Errorf("verify: %+v, %v", r, err)
	}
}

// fill takes all the room there is but for margin bytes.
func fill(t *testing.T, path string, margin int64) {
	t.Helper()
	f, err := os.Create(path)
	mustDo(t, err)
	defer f.Close()
	size := int64(0)
	for chunk := int64(64 << 20); chunk >= 512; {
		err := unix.Fallocate(int(f.Fd()), 0, size, chunk)
		switch {
		case err == nil:
			size += chunk
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
			chunk /= 2
		default:
			t.Fatal(err)
		}
	}
	if size < margin {
		t.Fatalf("only %d bytes to fill", size)
	}
	mustDo(t, f.Truncate(size-margin), f.Sync())
}
