//go:build unix

package holdfast

import "example.com/holdfast/internal/crashtest/planted"

// Bugs of verifications beside work, of backups and of restores.
var backupBugs = []planted.Bug{
	bug("hold: collections not kept out", "TestVerifyBesideWork$",
		edit("share.go", "	free, err := objects.TryLock(fsguard.Shared)\n", "	free, err := true, error(nil)\n")),
	bug("hold: collections kept out for ever", "TestVerifyBesideWork$",
		edit("hold.go", "		_ = h.objects.Unlock() // closing does it too, but for that child\n		_ = h.objects.Close()  // only read\n", "")),
	bug("hold: a look without the lock that was overtaken", "TestHoldWithoutTheLock$",
		edit("hold.go", "	if v.unlocked != nil {\n", "	if false {\n")),
	bug("hold: a collection not noticed", "TestHoldWithoutTheLock$",
		edit("share.go", "err == nil && !free { //", "err == nil && !free && false { //")),
	bug("verify: claims that are over not counted", "TestVerifyCounts$",
		edit("verify_gather.go", "		if c.lease.over(x.now) {\n", "		if false {\n")),
	bug("verify: faults in the order in which they were met", "TestVerifyInParallel$",
		edit("verify_payloads.go", "	slices.SortFunc(r.damage, func(a, b damage) int { return cmp.Compare(a.part, b.part) })\n", "	slices.SortFunc(r.damage, func(a, b damage) int { return cmp.Compare(b.part, a.part) })\n")),
	bug("verify: each message's object opened anew", "TestVerifyReadsEachFileOnce$",
		edit("verify_payloads.go", "	why, err := r.x.parts[i].admit(file)\n", "	file.close()\n	why, err := r.x.parts[i].admit(file)\n")),
	bug("verify: a context that is over", "TestVerifyInParallel$",
		edit("verify_payloads.go", "		r.err = ctx.Err()\n", "")),

	bug("verify: a payload in the object of a run", "TestVerifyTwoUsesOfAnObject$",
		edit("verify_gather.go", "	x.oneUseEach()\n", "")),
	bug("verify: JSON that comes in pieces not looked at", "TestRestoreRefusesALargeObject$",
		edit("verify_payloads.go", "	case !valid || !json.whole():\n", "	case false:\n")),
	bug("backup: into the store through a link", "TestBackupRefuses$",
		edit("backup.go", "		case is.Identity == root.Identity:\n", "		case at == s.dir && is.Identity == root.Identity:\n")),
	bug("backup: the state taken anew when the lock is free", "TestBackupBesideWork$",
		edit("backup.go", "	c.sink, err = open(c.now.Wall)\n", `	c.sink, err = open(c.now.Wall)
	if c.progress != nil {
		c.progress(0, 0)
	}
	if e := s.submit(ctx, &call{decide: func(v *view) error {
		c.text = encodeState(nil, v.draft.base)
		return nil
	}}); err == nil {
		err = e
	}
`)),
	bug("backup: of a state that may not last", "TestBackupRefuses$",
		edit("backup.go", "	if !v.settled {\n", "	if false {\n")),
	bug("backup: damaged payloads copied", "TestBackupRefuses$",
		edit("backup.go", "		case why != \"\":\n", "		case false:\n")),
	bug("backup: the manifest before what it names", "TestCrashBackup$",
		edit("backup_dir.go", "	if err := d.sync(); err != nil {\n		return err\n	}\n	if err := d.fs.SyncAll", "	if err := d.root.WriteFile(manifestFile, manifest); err != nil {\n		return err\n	}\n	if err := d.root.Sync(); err != nil {\n		return err\n	}\n	if err := d.sync(); err != nil {\n		return err\n	}\n	if err := d.fs.SyncAll")),
	bug("backup: files not synced", "TestCrashBackup$",
		edit("backup_dir.go", "	err := b.fs.SyncAll(targets...)\n", "	_ = targets\n	var err error\n")),
	bug("backup: the manifest's name not synced", "TestCrashBackup$",
		edit("backup_dir.go", "	return syncError(d.root.Sync())\n", "	return nil\n")),
	bug("backup: over something that is there", "TestBackupRefuses$",
		edit("backup_dir.go", "	if len(names) > 0 {\n", "	if len(names) > 0 && false {\n")),

	bug("restore: the store id kept", "TestBackupAndRestore$",
		edit("restore_state.go", "	c.store, c.commit, c.exchange, c.after = store, commit, exchange, token{}\n", "	c.store, c.commit, c.exchange, c.after = st.store, commit, exchange, token{}\n"),
		edit("restore_build.go", "c.st.store != x.st.store ||", "")),
	bug("restore: leases kept", "TestBackupAndRestore$",
		edit("restore_state.go", "		case s.claimed == nil ||", "		case true || s.claimed == nil ||"),
		edit("restore_build.go", " || r.Processing != 0 ||", " ||")),
	bug("restore: what was reaped keeps its lease", "TestBackupAndRestore$",
		edit("restore_state.go", "claimed: &claim{ref: s.claimed.ref, returned: reaped}}", "claimed: s.claimed}")),
	bug("restore: an attempt that is not excused", "TestBackupAndRestore$",
		edit("restore_state.go", "			s.claimed.excused++\n", "")),
	bug("restore: fences given out again", "TestBackupAndRestore$",
		edit("restore_state.go", "		c.fence += restoredFence\n", "")),
	bug("restore: over something that is there", "TestRestoreOverwritesNothing$",
		edit("restore.go", "	if err := nothingThere(root, s.dir); err != nil {\n", "	if err := nothingThere(root, s.dir); err != nil && false {\n")),
	bug("restore: success without a verification", "TestRestoreRefusesATape$",
		edit("restore.go", "	if err := x.verify(ctx, o); err != nil {\n		return Restored{}, err\n	}\n", "")),
	bug("restore: the manifest not believed in, and not looked at", "TestRestoreRefusesATape$",
		edit("restore_build.go", "		case m.Files[i] != got:\n", "		case false:\n")),
	bug("restore: links and devices taken for files", "TestRestoreRefusesATape$",
		edit("restore_source.go", "	case h.Typeflag != tar.TypeReg:\n", "	case false:\n")),
	bug("restore: objects of any length", "TestRestoreRefusesATape$",
		edit("restore_object.go", "		return u.bad(\"is longer than what %s names of it\", stateFile)\n", "		if _, err := io.Copy(io.Discard, u.in); err != nil {\n			return err\n		}\n")),
	bug("restore: an object whole in memory", "TestRestoreHoldsLittleOfAnObject$",
		edit("restore_object.go", "	u.in.Reset(io.TeeReader(in, came))\n", "	all, _ := io.ReadAll(in)\n	u.in.Reset(io.TeeReader(strings.NewReader(string(all)), came))\n")),
	bug("restore: messages where they come", "TestBackupLeavesOutWhatIsSettled$",
		edit("restore_object.go", "u.blank(opening(i), p.off-u.at)", "u.blank(opening(i), min(1, p.off-u.at))")),
	bug("restore: an empty directory left", "TestRestoreThatFailsLeavesNothing$",
		edit("restore.go", "	if err != nil && made {\n", "	if err != nil && made && false {\n")),
	bug("restore: files not synced", "TestCrashRestore$",
		edit("restore_build.go", "		return x.sync()\n", "		return nil\n")),
	bug("restore: the edges of the objects not synced", "TestCrashRestore$",
		edit("restore_build.go", "	if err := x.objects.Sync(); err != nil {\n		return err\n	}\n", "")),
	bug("restore: the store's name not synced", "TestCrashRestore$",
		edit("restore.go", "	if err := root.Sync(); err != nil {\n		return Restored{}, fmt.Errorf(\"it is not known whether the name", "	if err := error(nil); err != nil {\n		return Restored{}, fmt.Errorf(\"it is not known whether the name")),
	bug("restore: the name before the store", "TestCrashRestore$",
		edit("restore.go", "	if err := x.takeAll(ctx); err != nil {\n		return Restored{}, err\n	}\n", "	if err := root.Rename(restoringDir, namespaceDir); err != nil {\n		return Restored{}, err\n	}\n	if err := x.takeAll(ctx); err != nil {\n		return Restored{}, err\n	}\n"),
		edit("restore.go", "	// The commit point. Before it there is no store here, after it there is a whole one.\n	if err := root.Rename(restoringDir, namespaceDir); err != nil {\n		return Restored{}, err\n	}\n", "")),
	bug("restore: an interrupted one taken for nothing", "TestCrashRestore$",
		edit("pins.go", "		return fmt.Errorf(\"%s: %w\", dir, ErrInterruptedRestore)\n", "		return fmt.Errorf(\"%s: %w\", dir, ErrNoStore)\n")),
	bug("restore: the exchange believed in", "TestRestoreProvesTheExchangeAnew$",
		edit("restore_build.go", "x.old.restored(store, commit, exchange)", "x.old.restored(store, commit, x.old.exchange || exchange && false)")),
}
