//go:build unix

package load

import (
	"os"
	"testing"

	"example.com/holdfast/internal/crashtest/leak"
)

func TestMain(m *testing.M) {
	Child() // when this is a process of a trial, it ends here
	os.Exit(leak.Main(m))
}
