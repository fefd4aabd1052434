// Command attack tries against a live basaltd what its tenants, strangers and the
// servers that tenants name could do to it, and prints a line for each try: whether
// it was held, and if not, what got through. It makes what it needs (two
// organizations, a reseller, keys, users, prices), and removes all of it again.
//
// What got through once stays a try here, so that it does not get through again.
//
//	attack --server https://cloud.example:7480 --key-file operator.key
//
// It exits with 0 if everything was held, with 1 if something got through, and with
// 2 if it could not try. What it leaves behind is in the audit trail only. Do not
// run it against a cluster whose tenants must not notice: for seconds it sends as
// much as it can.
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

// options are what the command line says.
type options struct {
	server, keyFile, caFile string
	// own is an address of this machine that basaltd may fetch from: a public one,
	// or one of its --url-network. Empty: what needs a hostile server is left out.
	own string
	// tokens is how many wrong ones are sent.
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

// try is one thing that an attacker does.
type try struct {
	name string
	want string // what holds against it, in words
	// do returns nil if it was held, an error that says what got through, or
	// leftOut.
	do func(context.Context) error
}

// leftOut is why a try cannot be made here.
type leftOut string

func (l leftOut) Error() string { return string(l) }

// run makes the world, tries everything in it, and removes it.
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
		// Also what an interrupt has left.
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

// oneLine is an error without line breaks, and not all of a long one.
func oneLine(err error) string {
	const most = 2000
	s := strings.ReplaceAll(err.Error(), "\n", "; ")
	return s[:min(len(s), most)]
}

// tries are all that there are. What counts against this machine's address comes
// last.
func (w *world) tries() (all []try) {
	for _, area := range []func() []try{w.urlTries, w.webhookTries, w.providerTries, w.tenantTries, w.secretTries, w.roleTries, w.scopeTries,
		w.quotaTries, w.referenceTries, w.moneyTries, w.auditTries, w.addressTries, w.factorTries, w.transportTries, w.credentialTries} {
		all = append(all, area()...)
	}
	return all
}
