// Package leak proves of a package's tests that they leave no goroutine and no descriptor
// behind. Only tests import it.
//
// It looks once, when all tests of the package have run: tests run side by side, and what
// is open between two of them may be a third one's. A leak of any test stays until then.
package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Main runs the tests, then what is to be done after them all, however they ended, and gives
// the code to exit with: 1 if they passed and left something behind.
func Main(m interface{ Run() int }, after ...func()) int {
	descriptors := open()
	code := m.Run()
	for _, do := range after {
		do()
	}
	if code != 0 {
		return code // a test that failed may well have left something
	}
	left := settle(func() []string { return append(goroutines(), since(descriptors, open())...) })
	if len(left) == 0 {
		return 0
	}
	fmt.Fprintf(os.Stderr, "--- FAIL: the tests left %d behind; a run of one test alone tells whose it is\n%s\n",
		len(left), strings.Join(left, "\n\n"))
	return 1
}

// patience is how long something may still be on its way out. It is used up only before a
// failure.
const patience = 3 * time.Second

// settle asks until nothing is left.
func settle(ask func() []string) (left []string) {
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		if left = ask(); len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// goroutines lists all others but those that the standard library keeps once it has begun
// them: the one that hands out signals, and those of the flags of go test.
func goroutines() (stacks []string) {
	buf := make([]byte, 1<<16)
	n := runtime.Stack(buf, true)
	for n == len(buf) { // cut short
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	all := strings.Split(strings.TrimSpace(string(buf[:n])), "\n\n")
	for _, stack := range all[1:] { // the first is this one
		if !kept(stack) {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

func kept(stack string) bool {
	for _, by := range []string{"created by os/signal.Notify", "created by runtime/pprof.StartCPUProfile", "created by runtime/trace.Start", "created by testing."} {
		if strings.Contains(stack, by) {
			return true
		}
	}
	return false
}
