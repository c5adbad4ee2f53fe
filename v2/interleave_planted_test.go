//go:build unix

package holdfast

import "example.com/holdfast/internal/crashtest/planted"

// interleavePlants are bugs that show only where several processes meet, each caught by
// the scene that its test names.
var interleavePlants = []planted.Bug{
	{Name: "interleaved: state not read again under the lock", Test: "TestInterleave$/^claim-claim$", Edits: []planted.Edit{
		{File: "commit.go", Old: "	if c == nil {\n		return false, nil\n	}\n	info,", New: "	if c != nil {\n		return true, nil\n	}\n	info,"}}},
	{Name: "interleaved: a writer shares the lock", Test: "TestInterleave$/^enqueue-enqueue$", Edits: []planted.Edit{
		{File: "lock.go", Old: "	err := p.lock.Lock(mode)\n", New: "	err := p.lock.Lock(fsguard.Shared)\n"},
		{File: "lock.go", Old: "p.lock.TryLock(mode)\n", New: "p.lock.TryLock(fsguard.Shared)\n"}}},
	{Name: "interleaved: lock let go before the last sync", Test: "TestInterleave$/^claim-claim-consent$", Edits: []planted.Edit{
		{File: "exchange.go", Old: "	if err := s.fs.SyncAll(targets...); err != nil {", New: "	_, _ = p.lock.WriteAt([]byte(blankRecord), 0)\n	_ = p.lock.Unlock()\n	if err := s.fs.SyncAll(targets...); err != nil {"}}},
	{Name: "interleaved: a dead owner's record overlooked", Test: "TestInterleave$/^claim-claim-consent$", Edits: []planted.Edit{
		{File: "lock.go", Old: "	t.found, t.stale = owner, !blank\n", New: "	t.found, t.stale = owner, !blank && false\n"}}},
	{Name: "interleaved: recovery believes what it sees", Test: "TestInterleave$/^claim-claim-consent$", Edits: []planted.Edit{
		{File: "recover.go", Old: "		err = s.publish(t, fresh, settlingOnly, parent)\n", New: "		fresh.st.revision, fresh.st.commit, err = st.revision, st.commit, nil\n"}}},
	{Name: "interleaved: record not blanked", Test: "TestInterleave$/^enqueue-enqueue$", Edits: []planted.Edit{
		{File: "lock.go", Old: "	if t.written && !t.keep {\n", New: "	if t.written && !t.keep && false {\n"}}},
	{Name: "interleaved: two Creates at once", Test: "TestInterleave$/^create-create$", Edits: []planted.Edit{
		{File: "create.go", Old: "	if err := lockWithin(ctx, root, fsguard.Exclusive); err != nil {\n", New: "	if err := error(nil); err != nil {\n"}}},
	{Name: "interleaved: a living holder taken for dead", Test: "TestInterleave$/^claim-reap$", Edits: []planted.Edit{
		{File: "prove.go", Old: "	if err != nil || !free {\n", New: "	if err != nil || !free && false {\n"}}},
	{Name: "interleaved: a late ack taken", Test: "TestInterleave$/^late-worker$", Edits: []planted.Edit{
		{File: "settle.go", Old: "case c.attempts != r.Attempt:", New: "case false:"}}},
	{Name: "interleaved: an update half made", Test: "TestInterleave$/^update-clear$", Edits: []planted.Edit{
		{File: "update.go", Old: "	err := v.draft.atomically(func() error {", New: "	err := func(f func() error) error { return f() }(func() error {"}}},
}
