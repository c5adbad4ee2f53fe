//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/doctor"
)

const sickTable = `fit for v2: no
checked /home: ext4
CHECK             V2   OUTCOME         TRIED; WHAT FOR; WHAT WAS SEEN
filesystem        yes  told            ask its type (statfs)
                                       for: locks and syncs mean what they say
                                       only on some
                                       seen: ext4
mount options     -    told            read them from /proc/self/mountinfo
                                       for: a sync must reach the device,
                                       through its cache
                                       seen: no option of / turns barriers off
free space        yes  told            ask for it (statfs)
                                       for: enqueue stops below the floor
                                       seen: 3072 MiB are free, the floor is 8
                                       MiB
owner             yes  told            ask whose the directory is, and who may
                                       write it
                                       for: nobody else may put files into a
                                       store
                                       seen: yours, and nobody else writes it
`

const sickEnd = `
lock       none
publish    rename over state.json, then a sync of its
           directory
wake       a look every second
leases     the boot clock, suspend included
v1 claims  rename that replaces nothing, where it is chosen
reason     file lock: refused with ENOSYS: function not
           implemented
reason     directory lock: refused with ENOSYS: function not
           implemented
store      none is there
next       df /home
fit for v2: no
`

const sickBrief = `fit for v2: no
checked /home: ext4
filesystem        ok   ext4
mount options     ok
free space        ok   3072 MiB are free
owner             ok
scratch directory ok
private modes     ok
exclusive create  ok
rename over       ok
rename no replace ok
hard link         -    EACCES; for: v1 claims by links; v2
                       makes none
name case         ok
file sync         ok
size after write  WARN broken
                       tried: ask for a file's size right
                       after it was written
                       for: finding cut files; a store also
                       reads to the end
                       seen: 9000 bytes were written and the
                       size is told as 0; a store goes by
                       what it reads
directory sync    ok
allocate          ok
file lock         NO   ENOSYS
                       tried: lock a file (flock) that is
                       open twice
                       for: one writer at a time; and the
                       proof that a worker is dead
                       seen: function not implemented
directory lock    NO   ENOSYS
                       tried: lock a directory (flock) that
                       is open twice
                       for: one creation at a time
                       seen: function not implemented
watch             -    not tried: left out, as was asked
boot clock        ok
store             ok
store      none is there
next       df /home
fit for v2: no
`

// By default a check that is fine has one short line, and the whole is read on 60 columns.
func TestDoctorsBriefReport(t *testing.T) {
	m, a, out, _ := sickbed(t, func(d *crashtest.Disk) {
		d.SetLockError(syscall.ENOSYS)
		d.SetLinkError(syscall.EACCES)
		d.SetSizeLies(true)
	})
	m.Skip = map[string]string{"watch": "left out, as was asked"}
	ask(t, m, a)
	if out.String() != sickBrief {
		t.Errorf("got\n%s", out)
	}
	narrow(t, out.String())
}

// What was not made for want of the scratch directory is one line; a needed check that
// was left out is named in the verdict.
func TestDoctorsBriefReportOfMany(t *testing.T) {
	m, a, out, _ := sickbed(t, func(d *crashtest.Disk) { d.SetReadOnly(true) })
	m.Skip = map[string]string{"allocate": "left out, as was asked"}
	ask(t, m, a)
	text := out.String()
	if !strings.Contains(text, "\nscratch directory NO   EROFS\n") || !strings.Contains(text, "\nthe others        -    13 checks not tried, without a\n                       scratch directory\n") || strings.Contains(text, "rename over") {
		t.Errorf("got\n%s", text)
	}
	const verdict = "fit for v2: no; not tried: allocate"
	if all := lines(text); all[0] != verdict || all[len(all)-1] != verdict {
		t.Errorf("%q, %q", all[0], all[len(all)-1])
	}
	narrow(t, text)
}

// The table is complete, is read on 80 columns, and ends with the verdict.
func TestDoctorsTable(t *testing.T) {
	m, a, out, errs := sickbed(t, func(d *crashtest.Disk) {
		d.SetLockError(syscall.ENOSYS)
		d.SetLinkError(syscall.EACCES)
	})
	a.verbose = true
	if got := ask(t, m, a); got != exitOperator {
		t.Errorf("exit %d", got)
	}
	text := out.String()
	if !strings.HasPrefix(text, sickTable) || !strings.HasSuffix(text, sickEnd) {
		t.Errorf("got\n%s", text)
	}
	for _, l := range lines(text) {
		if n := utf8.RuneCountInString(l); n > 80 {
			t.Errorf("%d columns: %s", n, l)
		}
	}
	for _, name := range doctor.Names() {
		if !strings.Contains(text, "\n"+title(name)+" ") {
			t.Errorf("%s is not in the table", name)
		}
	}
	if !strings.Contains(text, "\nhard link         -    EACCES          give a file a second name (linkat)\n") {
		t.Errorf("the refused link is not told by its errno:\n%s", text)
	}
	if want := "holdfast: /home: not fit for v2: file lock: refused with ENOSYS: function not implemented; run: df /home\n"; errs.String() != want {
		t.Errorf("got %q, want %q", errs, want)
	}
}

// The machine form is one object with these fields, no others.
func TestDoctorsJSON(t *testing.T) {
	m, a, out, errs := sickbed(t, func(d *crashtest.Disk) { d.SetSyncDirError(syscall.EINVAL) })
	a.json = true
	if got := ask(t, m, a); got != exitOperator {
		t.Errorf("exit %d", got)
	}
	text := out.String()
	x := decode[examined](t, text)
	const begin = `{"dir":"/home","place":"/home","exists":true,"filesystem":"ext4","free_bytes":3221225472,"floor_bytes":8388608,` +
		`"mount":{"point":"/","type":"ext4","source":"/dev/sda1","options":["rw"]},"checks":[` +
		`{"check":"filesystem","tried":"ask its type (statfs)","for":"locks and syncs mean what they say only on some","needed":true,` +
		`"outcome":"told","errno":"","seen":"ext4","weight":"fit"},`
	const end = `"mechanisms":{"lock":"flock","publish":"","wake":"a look every second","leases":"the boot clock, suspend included","v1":"link"},` +
		`"leftovers":[],"holds":"","fit":"no","store":null,"next":"df /home"}` + "\n"
	if !strings.HasPrefix(text, begin) || !strings.HasSuffix(text, end) || strings.Count(text, "\n") != 1 {
		t.Errorf("got %s", text)
	}
	if !strings.Contains(text, `{"check":"directory_sync","tried":"sync a directory","for":"the name of a new state is durable before a call returns",`+
		`"needed":true,"outcome":"refused","errno":"EINVAL","seen":"invalid argument","weight":"unfit"}`) || x.Fit != doctor.No {
		t.Errorf("got %s", text)
	}
	if l := decode[errorLine](t, errs.String()); l.Code != "unfit" || l.Exit != exitOperator || l.Run != "df /home" {
		t.Errorf("%+v", l)
	}
}

// What earlier tests left is told, with what removes it, and is no warning.
func TestDoctorTellsLeftovers(t *testing.T) {
	s := &session{t: t, dir: t.TempDir()}
	left := map[string]string{
		".holdfast-doctor-old": "of a doctor that was killed, or that runs just now",
		"holdfast-kill-test-1": "of a kill test that failed, was killed, or runs just now",
		"holdfast-power-test":  "of a power test, for --power-test check; when it is done",
	}
	for name := range left {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	words := strings.Join(strings.Fields(s.must("doctor")), " ")
	for name, text := range left {
		if !strings.Contains(words, "left over "+name+", "+text+": remove it rm -r "+s.dir+"/"+name) {
			t.Errorf("%s: %s", name, words)
		}
	}
	if x := decode[examined](t, s.must("doctor", "--json")); len(x.Leftovers) != 3 || x.Holds != "" || x.warning != "" || x.Next != "" {
		t.Errorf("%+v", x)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		more  int
		want  string
	}{
		{"", 5, 0, ""},
		{"a b c", 5, 0, "a b c"},
		{"a b c", 4, 0, "a b|c"},
		{"abcdefgh i", 4, 0, "abcd|efgh|i"},
		{"x abcdefghij", 4, 0, "x|abcd|efgh|ij"},
		{"é\x1bé", 4, 0, "é\\u0|01bé"},
		{"x abcdefghij y", 4, 3, "x|abcdefg|hij|y"},
		{"x abcdef y z", 4, 3, "x|abcdef|y z"},
	} {
		if got := strings.Join(wrap(c.text, c.width, c.width+c.more), "|"); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
