//go:build unix

// Package measure has what is read from the clock, the processes, the disk and the
// machine, and what is made of it: medians, ranges and ratios.
package measure

import "time"

// A Sample is what one trial took. What could not be read is negative.
type Sample struct {
	Messages int
	Elapsed  time.Duration
	CPU      time.Duration // of all processes that worked on it, user and system
	Written  float64       // bytes that the device wrote, less what it writes when idle
	Flushes  float64       // flushes that the device was asked for, likewise
}

// PerMessage is the time of one message in seconds.
func (s Sample) PerMessage() float64 { return s.Elapsed.Seconds() / float64(s.Messages) }

// Rate is messages a second.
func (s Sample) Rate() float64 { return float64(s.Messages) / s.Elapsed.Seconds() }

// A Meter reads before and after a trial.
type Meter struct {
	Device *Device // nil: there is none
	Idle   Traffic // what the device does in a second when nothing is measured
	Pids   []int   // of the processes that work beside this one

	began  time.Time
	cpu    time.Duration
	before Traffic
}

// Start begins a trial.
func (m *Meter) Start() error {
	var err error
	if m.cpu, err = cpuTime(m.Pids); err != nil {
		return err
	}
	if m.Device != nil {
		if m.before, err = m.Device.Traffic(); err != nil {
			return err
		}
	}
	m.began = time.Now()
	return nil
}

// Stop ends it.
func (m *Meter) Stop(messages int) (Sample, error) {
	s := Sample{Messages: messages, Elapsed: time.Since(m.began), Written: -1, Flushes: -1}
	cpu, err := cpuTime(m.Pids)
	if err != nil {
		return s, err
	}
	s.CPU = cpu - m.cpu
	if m.Device == nil {
		return s, nil
	}
	after, err := m.Device.Traffic()
	if err != nil {
		return s, err
	}
	t := after.less(m.before).less(m.Idle.times(s.Elapsed.Seconds()))
	// The idle part is an estimate: it may be more than there was.
	s.Written, s.Flushes = max(t.Bytes, 0), max(t.Flushes, 0)
	return s, nil
}
