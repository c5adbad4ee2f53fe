//go:build unix

package web

import (
	"os"
	"testing"

	"example.com/holdfast/internal/crashtest/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }
