// Command attack tries against a running basaltd what its users, unauthenticated
// clients and the servers that users name could do to it, and prints a line for each
// try: whether basaltd withstood it ("held"), and if not, what got through. It creates
// what it needs (two organizations, a reseller, keys, users, prices), and removes it
// again.
//
// Everything that ever got through stays a try here, as a regression test.
//
//	attack --server https://cloud.example:7480 --key-file operator.key
//
// The exit code is 0 if everything was held, 1 if something got through, and 2 if it
// could not try. Only the audit log keeps traces of it. Do not run it against a cluster
// whose users must not notice: for seconds it sends requests as fast as it can.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// options are the command-line options.
type options struct {
	server, keyFile, caFile string
	// own is an address of this machine that basaltd may fetch from: a public one, or
	// one in its --url-network. Empty: tries that need a malicious server are left out.
	own string
	// tokens is how many wrong tokens are sent.
	tokens int
	only   string
}

const (
	exitHeld, exitThrough, exitUntried = 0, 1, 2

	tidyTime = 2 * time.Minute
)

func main() {
	var o options
	flag.StringVar(&o.server, "server", "https://127.0.0.1:7480", "address of the API")
	flag.StringVar(&o.keyFile, "key-file", "", "file with an operator's API key")
	flag.StringVar(&o.caFile, "ca", "", "file with the certificates that sign the API's (PEM); the system's unless given")
	flag.StringVar(&o.own, "own", "", "address of this machine that basaltd may fetch from: a public one, or one of its --url-network; what needs a hostile server is left out without it")
	flag.IntVar(&o.tokens, "tokens", 10_000, "how many wrong tokens are sent")
	flag.StringVar(&o.only, "only", "", "regular expression of the names of the tries")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
	}
	stop()
	os.Exit(code)
}

// try is one attack.
type try struct {
	name string
	want string // the expected defense, in words
	// do returns nil if the attack was held, an error that describes what got through,
	// or leftOut.
	do func(context.Context) error
}

// leftOut is the reason why a try cannot be made here.
type leftOut string

func (l leftOut) Error() string { return string(l) }

// run creates the world, makes all tries, and removes the world.
func run(ctx context.Context, o options, out io.Writer) (code int, err error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return exitUntried, fmt.Errorf("--only: %w", err)
	}
	w, err := newWorld(ctx, o)
	if err != nil {
		return exitUntried, err
	}
	defer func() {
		// Tidy up after an interrupt, too.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
		defer cancel()
		if left := w.tidy(ctx); left != nil {
			code, err = exitUntried, errors.Join(err, left)
		}
	}()
	if err := w.settle(ctx); err != nil {
		return exitUntried, fmt.Errorf("make what is to be attacked: %w", err)
	}
	held, through, left := 0, 0, 0
	for _, t := range w.tries() {
		if !only.MatchString(t.name) {
			continue
		}
		began := time.Now()
		err := t.do(ctx)
		var why leftOut
		switch took := time.Since(began).Round(time.Millisecond); {
		case ctx.Err() != nil:
			return exitUntried, ctx.Err()
		case err == nil:
			held++
			_, err = fmt.Fprintf(out, "held      %s: %s (%v)\n", t.name, t.want, took)
		case errors.As(err, &why):
			left++
			_, err = fmt.Fprintf(out, "left out  %s: %s\n", t.name, why)
		default:
			through++
			_, err = fmt.Fprintf(out, "THROUGH   %s: want: %s; got: %s\n", t.name, t.want, oneLine(err))
		}
		if err != nil {
			return exitUntried, err
		}
	}
	if _, err := fmt.Fprintf(out, "%d tries were held, %d got through, %d were left out\n", held, through, left); err != nil {
		return exitUntried, err
	}
	if through > 0 {
		return exitThrough, nil
	}
	return exitHeld, nil
}

// oneLine returns an error without line breaks, shortened if necessary.
func oneLine(err error) string {
	const most = 2000
	s := strings.ReplaceAll(err.Error(), "\n", "; ")
	return s[:min(len(s), most)]
}

// tries returns all tries. Those that count against this machine's address come last.
func (w *world) tries() (all []try) {
	for _, area := range []func() []try{w.urlTries, w.webhookTries, w.providerTries, w.tenantTries, w.secretTries, w.nodeTries, w.roleTries, w.groupTries, w.scopeTries,
		w.quotaTries, w.referenceTries, w.moneyTries, w.auditTries, w.addressTries, w.factorTries, w.transportTries, w.credentialTries} {
		all = append(all, area()...)
	}
	return all
}
