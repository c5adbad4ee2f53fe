//go:build unix

package holdfast

import "example.com/holdfast/internal/crashtest/planted"

// Bugs of the exchange: the spare, and who reads what is overwritten.
var exchangeBugs = []planted.Bug{
	bug("spare not synced", "TestCrash$/^claim$",
		edit("spare.go", "		w.targets = append(w.targets, fsguard.DataOf(file))\n", "")),
	bug("a new spare not synced", "TestCrashSpareGone$",
		edit("spare.go", "		w.targets = append(w.targets, file)\n", "")),
	bug("spare overwritten after an uncertain exchange", "TestUncertainExchangeKeepsTheRetired$",
		edit("exchange.go", " && !t.stale\n", "\n")),
	bug("spare overwritten by a recovery", "TestUncertain$/^told,_and_goes_on$/^ack$",
		edit("exchange.go", " && !t.stale\n", "\n")),
	bug("state recognised by its inode", "TestTwoCommitsBringTheFileBack$",
		edit("commit.go", "	return beginsWith(file, c.head)\n", "	return true, nil\n")),
	bug("a reader that does not look again", "TestReaderBesideAHalfWrittenSpare$",
		edit("unlocked.go", "err != nil || !same || !bytes.HasPrefix(text, head) {", "err != nil || !same && false {")),
	bug("a reader that does not look at the name", "TestReaderBesideAHalfWrittenSpare$",
		edit("unlocked.go", "	} else if info.Identity != opened.Identity {", "	} else if info.Identity != opened.Identity && false {")),
	bug("first bytes not written first", "TestReaderBesideAHalfWrittenSpare$",
		edit("spare.go", "	if _, err := file.WriteAt(text[:spareHead], 0); err != nil {\n		return true, err\n	}\n	_, err = file.WriteAt(text[spareHead:], spareHead)\n",
			"	if _, err := file.WriteAt(text[spareHead:], spareHead); err != nil {\n		return true, err\n	}\n	_, err = file.WriteAt(text[:spareHead], 0)\n")),
	bug("a reader that tries for ever", "TestReaderOvertaken$",
		edit("unlocked.go", "	for range maxReadings {", "	for range maxReadings + 1 {")),
	bug("old text's tail not blanked", "TestNothingIsLeftOfALongerText$",
		edit("spare.go", "	upTo := max(used, int64(len(s.text)))\n", "	upTo := max(0*used, int64(len(s.text)))\n")),
	bug("a spare known by its inode", "TestNothingIsLeftOfALongerText$",
		edit("spare.go", " || info.MtimeNanos != f.info.MtimeNanos {", " {"),
		edit("spare.go", "	return beginsWith(file, f.head)\n", "	return true, nil\n")),
	bug("spare of a failed sync used again", "TestSpareWhoseSyncFailed$",
		edit("commit.go", "		w.lasting = false // what", "		// what")),
	bug("spare not looked at before the exchange", "TestSpareReplacedInsideACommit$",
		edit("commit.go", "	return w.admitSpare()\n", "	return nil\n")),
	bug("an exchange believed", "TestCreateProvesTheExchange$",
		edit("exchange.go", "		case info.Identity != made[1-i]:", "		case info.Identity != made[1-i] && false:")),
	bug("a refused exchange an error", "TestExchangeRefused$",
		edit("exchange.go", "	if err == nil || !exchangeRefused(err) || s.stillCurrent(w) != nil {", "	if true {")),
	bug("spaces without the feature", "TestPadding$",
		edit("decode.go", "	if st.exchange {\n		d.endPadded()", "	if true {\n		d.endPadded()")),
	bug("files that only grow", "TestSpareGrowsAndShrinks$",
		edit("spare.go", "err == nil && length <= 2*size+spareSlack {", "err == nil && length < 1<<40 {")),
}
