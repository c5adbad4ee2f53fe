//go:build unix

package main

import (
	"testing"

	"example.com/holdfast/internal/crashtest/planted"
	"example.com/holdfast/internal/crashtest/testrun"
)

// What the tests of the view must catch.
var plantedInTop = []planted.Bug{
	{Name: "table: a cell is not made safe", Test: "TestTopScreens", Edits: []planted.Edit{
		{File: "table.go", Old: "safe[r][i] = printable(row[i])", New: "safe[r][i] = row[i]"}}},
	{Name: "top: a line is not made safe", Test: "TestTopShowsErrorsInPlace", Edits: []planted.Edit{
		{File: "top_view.go", Old: "cutCells(printable(fmt.Sprintf(format, args...)), m.width)", New: "cutCells(fmt.Sprintf(format, args...), m.width)"}}},
	{Name: "top: a detail is not made safe", Test: "TestTopScreens", Edits: []planted.Edit{
		{File: "top_view.go", Old: "pad(f[0], 11, false)+printable(f[1])", New: "pad(f[0], 11, false)+f[1]"}}},
	{Name: "top: a question is not made safe", Test: "TestTopFitsEveryWindow", Edits: []planted.Edit{
		{File: "top_view.go", Old: "question := printable(m.ask.question())", New: "question := m.ask.question()"}}},
	{Name: "top: what was said is not made safe", Test: "TestTopShowsErrorsInPlace", Edits: []planted.Edit{
		{File: "top_view.go", Old: "m.wrapped(printable(m.said))", New: "m.wrapped(m.said)"}}},
	{Name: "top: not asked first", Test: "TestTopAsksBeforeEveryDeed", Edits: []planted.Edit{
		{File: "top_keys.go", Old: "		m.wish(key)\n	}\n	return nil", New: "		if m.wish(key); m.ask != nil {\n			d := *m.ask\n			m.ask = nil\n			return m.begin(d)\n		}\n	}\n	return nil"}}},
	{Name: "top: any key is a yes", Test: "TestTopAsksBeforeEveryDeed", Edits: []planted.Edit{
		{File: "top_keys.go", Old: `if key == "y" || key == "Y" {`, New: `if key != "n" && key != "esc" {`}}},
	{Name: "top: done to what the cursor is on by then", Test: "TestTopDoesWhatWasAsked", Edits: []planted.Edit{
		{File: "top_keys.go", Old: "		d := *m.ask\n", New: "		d := *m.ask\n		if rows := m.rows(); len(rows) > 0 {\n			d.entry = rows[m.at(rows)].entry\n		}\n"}}},
	{Name: "top: a failed name is enough", Test: "TestTopDeedsOnWhatHasChanged", Edits: []planted.Edit{
		{File: "top_act.go", Old: "now.Generation != e.Generation || !now.FailedAt.Equal(e.FailedAt)", New: "now.Generation == \"\""}}},
	{Name: "top: a change withdrawn for its time taken for one that failed", Test: "TestTopSaysThatTheStoreIsBusy", Edits: []planted.Edit{
		{File: "top_act.go", Old: "	case outOfTime(err):", New: "	case outOfTime(err) && false:"}}},
	{Name: "survey: of a busy store only the gauges", Test: "TestSurveyDoesNotWaitForALock", Edits: []planted.Edit{
		{File: "survey.go", Old: "if err == nil && !v.status.Settled {", New: "if err == nil && !v.status.Settled && false {"}}},
	{Name: "rates: a counter that went back", Test: "TestFlow", Edits: []planted.Edit{
		{File: "rates.go", Old: "	if wentBack(was, is) {", New: "	if wentBack(was, is) && false {"}}},
	{Name: "status: the screen is cleared each time", Test: "TestStatusWatchOnATerminal", Edits: []planted.Edit{
		{File: "status_watch.go", Old: `if w.screen == "" {`, New: `if true {`}}},
}

func TestPlantedBugsOfTopAreCaught(t *testing.T) {
	if !testrun.Thorough() || testrun.RaceDetector() {
		t.Skip("one build more: all of it runs with HOLDFAST_REQUIRE_ALL=1")
	}
	planted.Catch(t, plantedInTop, "HOLDFAST_REQUIRE_ALL=")
}
