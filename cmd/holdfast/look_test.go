//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// treeOf describes every file: name, mode, time and content.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(content))
		}
		tree[path] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// looks are the commands that only look, for a store that fillForLooks filled.
var looks = [][]string{
	{"status"}, {"status", "chat", "--json"}, {"ls", "chat"}, {"ls", "chat", "--json"},
	{"show", "chat", "m"}, {"show", "chat", "m", "--payload"}, {"peek", "chat", "-n", "5"},
	{"failed", "ls"}, {"failed", "show", "bad"}, {"failed", "show", "bad", "--payload"},
	{"verify"}, {"verify", "--json"}, {"collect", "--dry-run"}, {"status", "--orphans"}, {"set"}, {"set", "--queue", "chat"}, {"cursor", "chat"},
	{"ls", "--overdue"}, {"failed", "ls", "chat"}, {"wait", "other"}, {"wait", "chat", "--message", "gone"},
}

func fillForLooks(s *session) {
	s.must("enqueue", "chat", "1", "--id", "bad")
	s.must("fail", decode[claimLine](s.t, s.must("claim", "chat", "--json")).Receipt, "--cause", "x")
	s.must("enqueue", "chat", "2", "--id", "held")
	s.must("claim", "chat", "--lease", "none")
	s.must("enqueue", "chat", "3", "--id", "m")
	s.must("cursor", "chat", "--set", "7")
}

func TestLooksChangeNoByte(t *testing.T) {
	s := newStore(t)
	fillForLooks(s)
	before := treeOf(t, s.dir)
	for _, args := range looks {
		s.must(args...)
		if after := treeOf(t, s.dir); !maps.Equal(before, after) {
			t.Fatalf("%q changed the store", args)
		}
	}
}

func TestLooksNeedNoWritePermission(t *testing.T) {
	const nobody = 65534
	base, err := os.MkdirTemp("", "holdfast-look-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	s := &session{t: t, dir: filepath.Join(base, "store")}
	s.must("init")
	fillForLooks(s)
	command := filepath.Join(base, "holdfast")
	copyFile(t, os.Args[0], command)
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 { // root may write anywhere: let somebody else look
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	chmod := func(mode fs.FileMode) {
		err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && attr.Credential != nil {
				err = os.Chown(path, nobody, nobody)
			}
			if err == nil && d.IsDir() {
				return os.Chmod(path, mode|0o500)
			}
			if err == nil {
				err = os.Chmod(path, mode|0o400)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	os.Chmod(base, 0o755)
	chmod(0)
	defer chmod(0o200)
	for _, args := range [][]string{{"status", "--json"}, {"ls", "chat"}, {"show", "chat", "m", "--payload"}, {"failed", "show", "bad"}, {"verify"}, {"cursor", "chat"}, {"wait", "other"}} {
		cmd := exec.Command(command, append([]string{"--dir", s.dir}, args...)...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		cmd.SysProcAttr = attr
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if closeErr := out.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
}

// A lookStore answers with an unsettled, empty queue.
type lookStore struct {
	store
	owner *queue.Owner
	set   holdfast.Settings
}

func (l *lookStore) Settings(context.Context) (holdfast.Settings, error) { return l.set, nil }

func (l *lookStore) Status(context.Context, queue.StatusOptions) (queue.Status, error) {
	return queue.Status{Revision: 7, Owner: l.owner, Queues: map[string]queue.QueueStatus{"chat": {}}}, nil
}

func (l *lookStore) List(context.Context, string, queue.ListOptions) (queue.Page, error) {
	return queue.Page{}, nil
}

func (l *lookStore) Show(context.Context, string, string) ([]queue.Entry, error) {
	return []queue.Entry{{Queue: "chat", ID: "m", State: queue.Ready, Payload: []byte("1")}}, nil
}

func (l *lookStore) Close() error { return nil }

func TestUnsettledIsMarkedAndNeverComplete(t *testing.T) {
	owner := &queue.Owner{Token: "abc", PID: 42, Host: "phone", Since: time.Unix(1, 0)}
	for _, o := range []*queue.Owner{nil, owner} {
		s := &session{t: t, dir: "/fake", engine: with(&lookStore{owner: o})}
		st := decode[statusLine](t, s.must("status", "--json"))
		if st.Settled || st.Queues["chat"].Complete || (st.Owner == nil) != (o == nil) {
			t.Errorf("status --json: %+v", st)
		}
		text := s.must("status")
		if !strings.HasPrefix(text, "UNSETTLED: ") || strings.Contains(text, "yes") {
			t.Errorf("status: %q", text)
		}
		if o != nil && (!strings.Contains(text, "pid 42 on phone") || !strings.Contains(text, "is not finished. If it still runs, wait; otherwise: holdfast recover --dir /fake\n")) {
			t.Errorf("status: %q", text)
		}
		if o == nil && !strings.Contains(text, "another process holds the lock; try again\n") {
			t.Errorf("status: %q", text)
		}
		for _, args := range [][]string{{"show", "chat", "m"}, {"ls", "chat"}} {
			consents := &session{t: t, dir: "/fake", engine: with(&lookStore{owner: o, set: holdfast.Settings{OnDeadOwner: holdfast.AutoRecover}})}
			if got := consents.must(args...); o != nil && !strings.Contains(got, "otherwise: the next change recovers it\n") {
				t.Errorf("%q with on_dead_owner=recover: %q", args, got)
			}
			if got := s.must(args...); !strings.HasPrefix(got, "UNSETTLED: ") {
				t.Errorf("%q: %q", args, got)
			}
		}
		if got := s.must("show", "chat", "m", "--json"); !strings.Contains(got, `"settled":false`) {
			t.Errorf("show --json: %q", got)
		}
		if got := s.run("ls", "chat", "--json"); got.out != "" || !strings.Contains(got.err, `"code":"unsettled"`) {
			t.Errorf("ls --json of nothing: %+v", got)
		}
	}
}

func TestVerifyFaultsExit3(t *testing.T) {
	s := &session{t: t, dir: filepath.Join(t.TempDir(), "store")}
	s.must("init")
	s.must("enqueue", "chat", `"whole"`, "--id", "m")
	payloads, err := filepath.Glob(filepath.Join(s.dir, ".fs-safe-queue-v2", "objects", "*", "payload.json"))
	if err != nil || len(payloads) != 1 {
		t.Fatal(payloads, err)
	}
	if err := os.WriteFile(payloads[0], []byte(`"wh0le"`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := s.run("verify", "--json")
	r := decode[holdfast.Report](t, got.out)
	if got.code != exitOperator || r.OK || len(r.Faults) != 1 || r.Faults[0].ID != "m" || decode[errorLine](t, got.err).Code != "faults" {
		t.Errorf("exit %d, %s, %s", got.code, got.out, got.err)
	}
	if got := s.run("show", "chat", "m", "--payload"); got.code != exitRefused || got.out != "" || !strings.Contains(got.err, "the payload is damaged: its checksum") {
		t.Errorf("show --payload: %+v", got)
	}

	// The damaged one is set aside, and the good one is delivered all the same.
	s.must("enqueue", "chat", `"good"`, "--id", "n")
	got = s.run("claim", "chat", "-n", "2", "--json")
	if l := decode[errorLine](t, got.err); got.code != exitRefused || l.Code != "damaged" || l.ID != "m" || l.Name != "m" {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
	if c := decode[claimLine](t, got.out); c.ID != "n" {
		t.Errorf("claimed: %s", got.out)
	}

	state := filepath.Join(s.dir, ".fs-safe-queue-v2", "state.json")
	if err := os.WriteFile(state, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.run("verify", "--json"); got.code != exitOperator || decode[holdfast.Report](t, got.out).OK {
		t.Errorf("exit %d, %s", got.code, got.out)
	}
	if got := s.run("verify"); strings.Contains(got.out, "UNSETTLED") || !strings.Contains(got.out, "fault state: ") {
		t.Errorf("for people: %q", got.out)
	}
	s.refused(exitOperator, "corrupt", "claim", "chat")
}
