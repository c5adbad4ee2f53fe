//go:build unix

// Holdfast is the operator's command for a durable JSON queue on the local
// filesystem. It reads its arguments and writes to streams; [Main] does both, so
// that tests run every command in their own process.
package main

import "os"

func main() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
