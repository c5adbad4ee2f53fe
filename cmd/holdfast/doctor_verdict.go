//go:build unix

package main

import "fmt"

// The verdicts of a power test.
const (
	powerPass       = "pass"
	powerConsistent = "consistent"   // nobody said what was acknowledged
	powerNoCut      = "no_power_cut" // nothing is wrong, and nothing was tested: there was no reboot
	powerFail       = "fail"
)

// powerResult is the machine form of a check.
type powerResult struct {
	OK           bool     `json:"ok"`
	Verdict      string   `json:"verdict"` // pass, consistent, no_power_cut, fail
	Dir          string   `json:"dir"`
	Seed         *uint64  `json:"seed"`         // null: it could not be read
	Steps        *uint64  `json:"steps"`        // that the store holds; null: it is the state after no number of steps
	Acknowledged *uint64  `json:"acknowledged"` // the last; null: nobody said
	Rebooted     *bool    `json:"rebooted"`     // since prepare; null: it cannot be told
	Recovered    bool     `json:"recovered"`    // it stood inside a commit
	Reasons      []string `json:"reasons"`      // of a fail
	Proven       []string `json:"proven"`
	NotProven    []string `json:"not_proven"`
	Next         string   `json:"next"` // removes the test; after a fail, looks at the place
}

// conclude says what this one check proves and what it does not.
func (c *powerCheckup) conclude() {
	r := &c.result
	if len(r.Reasons) > 0 {
		r.Verdict, r.Next = powerFail, "holdfast doctor --dir "+shellWord(c.a.dir)
		return
	}
	r.OK, r.Verdict = true, powerPass
	r.Proven = append(r.Proven, fmt.Sprintf("the store is whole, and is exactly what its first %d steps lead to", *r.Steps))
	if r.Acknowledged == nil {
		r.Verdict = powerConsistent
		r.NotProven = append(r.NotProven, "that nothing is lost: without the last acknowledged number only the store's consistency can be told")
	} else {
		r.Proven = append(r.Proven, fmt.Sprintf("of the %d steps that were acknowledged none is lost", *r.Acknowledged))
	}
	switch {
	case r.Rebooted == nil:
		r.NotProven = append(r.NotProven, "that there was a reboot: the boot id cannot be read here; you have to know it")
	case !*r.Rebooted:
		r.OK, r.Verdict = false, powerNoCut
		r.NotProven = append(r.NotProven, "anything about power: there was no reboot since the test was prepared")
	default:
		r.NotProven = append(r.NotProven, "that the power was away: the boot id tells a reboot, and a reboot in good order syncs everything first")
	}
	r.NotProven = append(r.NotProven, "the next time: one pass is one moment; repeat it, ten times and more")
	if c.mount == nil {
		r.NotProven = append(r.NotProven, "anything, where a mount option turns barriers off: the options cannot be read here")
	} else if option, _ := c.mount.Unsynced(); option != "" {
		r.NotProven = append(r.NotProven, fmt.Sprintf("anything: %s is mounted with %s, and a pass is luck there", c.mount.Point, option))
	}
}

// failure is the error of a check that is not passed. Its reasons stand in the report.
func (c *powerCheckup) failure() error {
	r := c.result
	switch {
	case r.OK:
		return nil
	case r.Verdict == powerNoCut:
		return about(fmt.Errorf("%w: there was no reboot since prepare, and so nothing was tested; remove it and prepare another", errNoPowerCut), facts{run: r.Next})
	}
	text := "look at the mount options; if they are sound please report it, with this output and the store"
	if c.behind {
		text = readAgain + "; if it is right, " + text
	}
	if c.a.json { // stderr may be all that is kept
		text = r.Reasons[0] + "; " + text
	}
	return about(fmt.Errorf("%w: %s", errPowerTest, text), facts{run: r.Next})
}

// readAgain is the first thing to do where the store holds less than somebody read.
const readAgain = "read the number again: it is that of the last complete line"

func (c *powerCheckup) print() {
	a, r := c.a, c.result
	if a.json {
		a.printJSON(r)
		return
	}
	a.paragraph("store", r.Dir)
	if r.Seed != nil {
		a.paragraph("seed", fmt.Sprint(*r.Seed))
	}
	if r.Recovered {
		a.paragraph("recovered", "it stood inside a commit; nothing was undone")
	}
	if r.Steps != nil {
		a.paragraph("holds", fmt.Sprintf("exactly the first %s", plural(int64(*r.Steps), "step")))
	}
	if r.Acknowledged != nil {
		a.paragraph("noted", fmt.Sprintf("step %d was acknowledged last", *r.Acknowledged))
	} else {
		a.paragraph("noted", "nobody says which step was acknowledged last: give --acknowledged N or --journal")
	}
	switch {
	case r.Verdict == powerFail:
	case r.Rebooted == nil:
		a.paragraph("warning", "whether there was a reboot cannot be told here: without one this proves nothing about power")
	case !*r.Rebooted:
		a.paragraph("warning", "no reboot since it was prepared: this proves nothing about power")
	}
	for _, part := range []struct {
		name  string
		texts []string
	}{{"reason", r.Reasons}, {"proven", r.Proven}, {"not proven", r.NotProven}} {
		for _, text := range part.texts {
			a.paragraph(part.name, text)
		}
	}
	if r.Verdict == powerFail {
		a.paragraph("keep it", "the store, and send it with this output")
	} else {
		a.toRun("remove it", r.Next)
	}
	a.printf("%s\n", verdictText[r.Verdict])
}

var verdictText = map[string]string{powerPass: "PASS", powerConsistent: "CONSISTENT", powerNoCut: "NO POWER CUT", powerFail: "FAIL"}
