package cli_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/api/server/totp"
	"github.com/basalt-gpu/basalt/appliance/cli"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestLoginAtATerminal sets a password at a terminal, signs in, turns one-time codes on and
// needs one from then on. The terminal never shows a secret.
func TestLoginAtATerminal(t *testing.T) {
	const password = "correct horse battery"
	e := servertest.Start(t, nil)
	op, err := client.New(client.Options{Server: e.URL, Token: e.Token})
	if err != nil {
		t.Fatal(err)
	}
	u, err := client.Of[api.User](op).Create(t.Context(), api.User{Meta: api.Meta{Name: "op@example.com"}, Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleOperator}}}})
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	// run runs a command, answers its questions and waits until the terminal shows words; empty
	// words mean that the command fails. An answer gets what the terminal shows before it. run
	// returns a function that returns the terminal's text.
	run := func(words string, args []string, answers ...func(shown string) string) func() string {
		t.Helper()
		p := openPty(t)
		app := &cli.App{In: p.far, Out: p.far, Err: p.far, Now: time.Now, ConfigDir: home,
			Getenv: func(name string) string { return map[string]string{"BASALT_SERVER": e.URL}[name] }}
		code := make(chan int, 1)
		go func() { code <- app.Run(t.Context(), args) }()
		for _, answer := range answers {
			p.waitFor(t, "a question", func() bool { return p.mode(t).Lflag&unix.ECHO == 0 && strings.HasSuffix(p.text(), ": ") })
			typed, before := answer(p.text()), len(p.text())
			if _, err := p.near.Write([]byte(typed + "\n")); err != nil {
				t.Fatal(err)
			}
			p.waitFor(t, "its end", func() bool { return len(p.text()) > before })
			if strings.Contains(p.text(), typed) {
				t.Errorf("terminal shows %q with the answer to a question in it, want the answer hidden", p.text())
			}
		}
		select {
		case c := <-code:
			if (c == 0) != (words != "") {
				t.Errorf("%v: exit code %d, want success %v; the terminal shows %q", args, c, words != "", p.text())
			}
			p.waitFor(t, words, func() bool { return strings.Contains(p.text(), words) })
		case <-patience.After(time.Minute):
			t.Fatalf("%v did not end within a minute; the terminal shows %q", args, p.text())
		}
		return p.text
	}
	reply := func(s string) func(string) string { return func(string) string { return s } }
	login := []string{"login", "--email", "op@example.com"}
	run("is set", []string{"password", "set", u.Link.Token}, reply(password))
	run("(operator)", login, reply(password))

	secret := ""
	now := func(at time.Time) string {
		c, err := totp.Code(secret, at)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	shown := run("Two-factor authentication is on", []string{"totp", "enable"}, func(shown string) string {
		secret = regexp.MustCompile(`secret: ([A-Z2-7]+)`).FindStringSubmatch(shown)[1]
		return now(time.Now())
	})
	recovery := ""
	patience.Until(t, time.Minute, "recovery codes are shown", func() bool {
		recovery = regexp.MustCompile(`[a-z2-7]{4}(-[a-z2-7]{4}){3}`).FindString(shown())
		return recovery != ""
	})
	run("", login, reply(password), reply("000000"))
	// The next time step's code: one that was used is not accepted again.
	run("(operator)", login, reply(password), reply(now(time.Now().Add(30*time.Second))))
	run("authentication is off", []string{"totp", "disable"}, reply(password), reply(recovery))
	run("(operator)", login, reply(password))
	run("Signed out", []string{"logout"})
}
