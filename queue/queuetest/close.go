package queuetest

import "example.com/holdfast/queue"

var closeTrials = []trial{
	{"calls answer ErrClosed", closeCalls},
	{"twice is no error", closeTwice},
	{"who is parked is told", closeParked},
	{"beside calls under way", closeBeside},
}

func (s *scene) close() {
	s.Helper()
	s.shut = true
	s.must(s.Store.Close())
}

func closeCalls(s *scene) {
	calls := s.calls()
	s.close()
	for _, c := range calls {
		s.Log(c.name)
		s.is(c.make(s.ctx), queue.ErrClosed)
	}
}

func closeTwice(s *scene) {
	s.close()
	s.close()
}

func closeParked(s *scene) {
	s.put(mail, "a", s.after(minute))
	due, wait := s.parkDue(mail), s.parkWait(queue.WaitOptions{})
	due.stays()
	wait.stays()
	due.allowed.Store(true)
	wait.allowed.Store(true)
	s.close()
	s.is((<-due.done).err, queue.ErrClosed)
	s.is((<-wait.done).err, queue.ErrClosed)
}

func closeBeside(s *scene) {
	entered := make(chan struct{}, 8)
	errs := s.together(9, func(i int) error {
		if i == 8 {
			<-entered
			s.shut = true
			return s.Store.Close()
		}
		for {
			if _, err := s.Store.Enqueue(s.ctx, mail, message("")); err != nil {
				return err
			}
			select {
			case entered <- struct{}{}:
			default:
			}
		}
	})
	s.must(errs[8])
	for _, err := range errs[:8] {
		s.is(err, queue.ErrClosed)
	}
}
