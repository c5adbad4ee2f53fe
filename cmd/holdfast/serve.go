//go:build unix

package main

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/spf13/cobra"

	"example.com/holdfast/internal/web"
)

// defaultListen is an address that no other device reaches.
const defaultListen = "127.0.0.1:7340"

// maxConnections is more than a process may have descriptors for, as a rule.
const maxConnections = 1 << 16

// serveFlags are what serve was asked for.
type serveFlags struct {
	listen, unix, tokenFile string
	metricsOpen             bool
	connections             int
}

func (a *app) serveCmd() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve --token-file FILE",
		Short: "Serve the store to programs in other languages, and a page to people",
		Long: `Serve the store on this machine: a JSON API, a page that shows the queues and their
messages, and /metrics. It listens on a loopback address or on a unix socket (mode
0600), and on nothing else, for nothing is encrypted.

Every request needs the token that stands in --token-file, as in "Authorization: Bearer
TOKEN"; the page asks for it. Where the file is not there it is made, mode 0600, with a
new token. --metrics-open lets /metrics be read without it.

Claims through the server name no holder and must have a deadline: nobody can prove
dead who asked for one. They outlive the server. The next claim of the queue returns
those that are over.

--max-connections bounds how many clients may be connected at once; others wait until
one has gone. Half as many claims may wait for a message.

It ends at SIGINT, SIGTERM or SIGHUP, once the requests under way are answered.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			set := cmd.Flags().Changed
			switch {
			case f.tokenFile == "":
				return usagef("--token-file is missing: name a file for the token; it is made where there is none")
			case set("unix") && set("listen"):
				return usagef("give --listen or --unix, not both")
			case set("unix") && f.unix == "":
				return usagef("--unix is empty: name the socket")
			case f.connections < 2 || f.connections > maxConnections:
				return usagef("--max-connections %d: want 2 to %d", f.connections, maxConnections)
			case f.metricsOpen && f.unix != "":
				return usagef("--metrics-open goes with --listen: a unix socket is for its owner alone")
			}
			return a.withStore(cmd.Context(), func(s store) error { return a.serve(cmd.Context(), s, f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", defaultListen, "a loopback address and port; port 0 is any free one")
	flags.StringVar(&f.unix, "unix", "", "a unix socket in place of an address")
	flags.StringVar(&f.tokenFile, "token-file", "", "the file with the token, readable by its owner alone")
	flags.IntVar(&f.connections, "max-connections", web.DefaultMaxConnections, "the most clients at once")
	flags.BoolVar(&f.metricsOpen, "metrics-open", false, "let /metrics be read without the token")
	return cmd
}

func (a *app) serve(ctx context.Context, s store, f serveFlags) error {
	token, made, err := web.Token(f.tokenFile)
	if err != nil {
		return fileError(f.tokenFile, err)
	}
	l, where, err := listen(f)
	if err != nil {
		return err
	}
	if made {
		a.note("token", "a new token stands in %s", f.tokenFile)
	}
	if a.json {
		a.printJSON(struct {
			Serving string `json:"serving"`
			Token   string `json:"token_file"`
		}{where, f.tokenFile})
	} else {
		a.printf("serving %s at %s; the token is in %s\n", a.dir, where, f.tokenFile)
	}
	a.flush() // its error is sticky and comes out at the end
	server := web.New(web.Config{
		Store: s, Token: token, MetricsOpen: f.metricsOpen, MaxConnections: f.connections,
		Classify: func(err error) (string, int) {
			k := kindOf(err)
			return k.code, k.exit
		},
	})
	return server.Serve(ctx, l)
}

// listen opens what is served on, and says how to reach it.
func listen(f serveFlags) (net.Listener, string, error) {
	if f.unix != "" {
		l, err := web.ListenUnix(f.unix)
		return l, "unix:" + f.unix, outside(err)
	}
	l, err := web.Listen(f.listen)
	if err != nil {
		return nil, "", outside(err)
	}
	return l, "http://" + l.Addr().String() + "/", nil
}

// outside is an error of something that is none of the store's.
func outside(err error) error {
	f := facts{outside: true}
	if errors.Is(err, syscall.EADDRINUSE) {
		f.advice = "end what serves there, or choose another place with --listen or --unix"
	}
	return about(err, f)
}
