//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"

	"example.com/holdfast/internal/doctor"
)

// The text says the same, on 60 columns, with the verdict at its end. A reason is told
// once; what is wrong is kept.
func TestPowerTestInWords(t *testing.T) {
	s := prepared(t, 5, 3)
	remove := "remove it  rm -r " + s.powerDir() + "\n"
	if len(remove) > reportWidth {
		remove = "remove it\nrm -r " + s.powerDir() + "\n" // whole, on a line of its own
	}
	const keep = "keep it    the store, and send it with this output"
	for _, c := range []struct {
		args, boot, last string
		has              []string
		err              string
	}{
		{"--acknowledged 3", anotherBoot, "PASS", []string{"noted      step 3 was acknowledged last", "holds      exactly the first 3 steps", "not proven the next time: one pass", remove}, ""},
		{"", anotherBoot, "CONSISTENT", []string{"noted      nobody says which step", "not proven that nothing is lost: ", remove}, ""},
		{"--acknowledged 3", "", "PASS", []string{"warning    whether there was a reboot cannot be told here:", remove}, ""},
		{"--acknowledged 3", "this", "NO POWER CUT", []string{"warning    no reboot since it was prepared: this proves\n           nothing about power", remove}, "the power was not away: "},
		{"--acknowledged 4", anotherBoot, "FAIL", []string{"reason     step 4 was acknowledged, and the store holds 3", keep}, "the power test failed: read the number again: it is that of the last complete line; "},
		{"--acknowledged 4", "this", "FAIL", []string{"reason     step 4 was acknowledged, and the store holds 3", keep}, "the power test failed: read the number again: "},
	} {
		boot := c.boot
		if boot == "this" {
			if boot = doctor.SystemBoot().ID; boot == "" {
				continue // that there was none cannot be told here
			}
		}
		s.setOrigin(powerOrigin{5, boot})
		got := s.run(append([]string{"doctor", "--power-test", "check"}, strings.Fields(c.args)...)...)
		all := lines(got.out)
		if all[len(all)-1] != c.last {
			t.Errorf("%s: it ends with %q", c.args, all[len(all)-1])
		}
		for _, part := range append(c.has, "store ", "seed       5") {
			if !strings.Contains("\n"+got.out, "\n"+part) {
				t.Errorf("%s: no %q in\n%s", c.args, part, got.out)
			}
		}
		if !strings.Contains(got.err, c.err) || (got.err == "") != (c.err == "") || strings.Contains(got.err, "the store holds") {
			t.Errorf("%s: %q, want %q", c.args, got.err, c.err)
		}
		if c.last == "FAIL" && strings.Contains(got.out, "rm -r") {
			t.Errorf("it says to remove the evidence:\n%s", got.out)
		}
		narrow(t, got.out)
	}
}

// Whether there was a reboot is told by the boot id, where it can be read. Without one
// nothing was tested, which is no pass; what is wrong stays wrong.
func TestPowerTestTellsAReboot(t *testing.T) {
	s := prepared(t, 1, 2)
	this := doctor.SystemBoot().ID
	for name, c := range map[string]struct {
		boot    string
		want    string // rebooted
		says    string // what is not proven
		verdict string
	}{
		"this boot":    {this, "false", "anything about power: there was no reboot", uncut()},
		"another boot": {anotherBoot, "true", "that the power was away", powerPass},
		"unknown":      {"", "null", "that there was a reboot", powerPass},
	} {
		if this == "" {
			c.want, c.says = "null", "that there was a reboot"
		}
		s.setOrigin(powerOrigin{1, c.boot})
		r := s.checked(c.verdict, "--acknowledged", "2")
		got := "null"
		if r.Rebooted != nil {
			got = fmt.Sprint(*r.Rebooted)
		}
		if got != c.want || !strings.Contains(strings.Join(r.NotProven, "\n"), c.says) {
			t.Errorf("%s: rebooted %s, %q; want %s, %q", name, got, r.NotProven, c.want, c.says)
		}
		s.checked(powerFail, "--acknowledged", "3")
	}
	s.setOrigin(powerOrigin{1, this})
	if r := s.checked(pick(map[bool]string{true: powerConsistent}[this == ""], powerNoCut)); r.Acknowledged != nil {
		t.Errorf("%+v", r)
	}
}

// A mount that leaves syncs out is told of where it is one.
func TestPowerTestTellsTheBarriers(t *testing.T) {
	for name, c := range map[string]struct {
		mount *doctor.Mount
		want  string // empty: nothing
	}{
		"barriers": {&doctor.Mount{Point: "/data", Options: []string{"rw"}}, ""},
		"none":     {&doctor.Mount{Point: "/data", Options: []string{"rw", "nobarrier"}}, "anything: /data is mounted with nobarrier, and a pass is luck there"},
		"unknown":  {nil, "anything, where a mount option turns barriers off: the options cannot be read here"},
	} {
		n, rebooted := uint64(1), true
		k := powerCheckup{mount: c.mount, result: powerResult{Steps: &n, Acknowledged: &n, Rebooted: &rebooted}}
		k.conclude()
		last := k.result.NotProven[len(k.result.NotProven)-1]
		if (last == c.want) != (c.want != "") || c.want == "" && strings.Contains(strings.Join(k.result.NotProven, "\n"), "barrier") {
			t.Errorf("%s: %q, want %q", name, k.result.NotProven, c.want)
		}
	}
}
