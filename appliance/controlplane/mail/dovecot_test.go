package mail

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
	"github.com/basalt-gpu/basalt/appliance/test/kit/testcert"
)

const dovecotProgram = "/usr/sbin/dovecot"

// nobody is a user that Dovecot accepts as the owner of mail; root is not.
const nobody = 65534

// dovecot is Debian's IMAP server (installer/dev/setup.sh), with one user and a Maildir.
type dovecot struct {
	t     *testing.T
	box   string
	cert  testcert.Files
	plain int // the port for STARTTLS
	tls   int
	stop  func()
}

func newDovecot(t *testing.T) *dovecot {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("host: Dovecot's master runs as root")
	}
	if _, err := os.Stat(dovecotProgram); err != nil {
		t.Skipf("host: Dovecot is not installed: installer/dev/setup.sh installs it: %v", err)
	}
	dir, err := os.MkdirTemp("", "dovecot") // its sockets' paths must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &dovecot{t: t, box: filepath.Join(dir, "box"), cert: testcert.Write(t, dir, "localhost", 1), plain: portOf(t), tls: portOf(t)}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d.makeBox(1)
	conf := strings.NewReplacer("{{dir}}", dir, "{{uid}}", strconv.Itoa(nobody), "{{plain}}", strconv.Itoa(d.plain), "{{tls}}", strconv.Itoa(d.tls)).Replace(dovecotConf(t))
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	d.start(dir)
	return d
}

// dovecotConf returns the configuration for the installed version: 2.4, of Debian 13, has
// another syntax than 2.3, of Debian 12.
func dovecotConf(t *testing.T) string {
	t.Helper()
	version, err := exec.Command(dovecotProgram, "--version").Output()
	if err != nil {
		t.Fatalf("dovecot --version: %v", err)
	}
	name := "dovecot-2.3.conf"
	if !strings.HasPrefix(string(version), "2.3.") {
		name = "dovecot-2.4.conf"
	}
	conf, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(conf)
}

func portOf(t *testing.T) int {
	t.Helper()
	_, text, err := net.SplitHostPort(port.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (d *dovecot) start(dir string) {
	d.t.Helper()
	var output bytes.Buffer
	cmd := exec.Command(dovecotProgram, "-F", "-c", filepath.Join(dir, "conf"))
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.stop = sync.OnceFunc(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	d.t.Cleanup(func() {
		d.stop()
		if d.t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			d.t.Logf("Dovecot: %s\n%s", output.String(), log)
		}
	})
	for _, port := range []int{d.plain, d.tls} {
		patience.Until(d.t, time.Minute, "Dovecot listens", func() bool {
			c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		})
	}
}

// makeBox creates an empty Maildir with a UIDVALIDITY (Dovecot's file dovecot-uidlist).
func (d *dovecot) makeBox(validity int) {
	d.t.Helper()
	for _, dir := range []string{"", "new", "cur", "tmp"} {
		path := filepath.Join(d.box, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			d.t.Fatal(err)
		}
		if err := os.Chown(path, nobody, nobody); err != nil {
			d.t.Fatal(err)
		}
	}
	d.write("dovecot-uidlist", fmt.Sprintf("3 V%d N1\n", validity))
}

// write writes a file of the Maildir.
func (d *dovecot) write(name, content string) string {
	d.t.Helper()
	path := filepath.Join(d.box, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Chown(path, nobody, nobody); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// deliver puts a message into the mailbox.
func (d *dovecot) deliver(name, raw string) {
	d.t.Helper()
	if err := os.Rename(d.write(filepath.Join("tmp", name), raw), filepath.Join(d.box, "new", name)); err != nil {
		d.t.Fatal(err)
	}
}

// settings returns the settings of the mailbox as a client sends them.
func (d *dovecot) settings(security api.MailSecurity) *api.MailBounces {
	b := &api.MailBounces{Server: "localhost", Port: d.tls, Security: security, User: "cloud", Password: "secret"}
	if security == api.MailSTARTTLS {
		b.Port = d.plain
	}
	return b
}

// bounces is a fixture whose mailbox of returned mail is on a Dovecot.
type bounces struct {
	*fixture
	dovecot *dovecot
	reader  *Bounces
}

func newBounces(t *testing.T, security api.MailSecurity) *bounces {
	t.Helper()
	b := &bounces{fixture: newFixture(t), dovecot: newDovecot(t)}
	b.now = time.Now().UTC() // Dovecot's messages arrive at its time
	b.reader = NewBounces(Options{Store: b.store, Roots: b.dovecot.cert.Roots, Now: b.clock, Wait: b.wait})
	b.set(b.dovecot.settings(security))
	return b
}

// set writes the settings of the mailbox.
func (b *bounces) set(s *api.MailBounces) {
	b.Helper()
	b.configure(&net.TCPAddr{Port: 25}, func(to *api.MailSettingsSpec) { to.Bounces = api.MailSettings{Bounces: s}.Spec().Bounces })
	b.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindMailSettings, ID: api.MailBouncesID, Name: "mail-bounces", Expect: api.AnyRevision, Data: api.Encode(struct{}{})})
}

// sent adds a message that the mail server has accepted.
func (b *bounces) sent(id, to string) {
	b.Helper()
	b.queue(id, api.MailMessageSpec{Type: api.MailTypeInvoice, To: to})
	b.apply(api.Command{Op: api.OpReport, Kind: api.KindMailMessage, ID: id, Expect: api.AnyRevision,
		Data: api.Encode(api.MailMessageStatus{State: api.MailSent, MessageID: "<" + id + "@example.com>", DoneAt: &b.now})})
}

func (b *bounces) step() (more bool) {
	b.Helper()
	more, err := b.reader.step(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return more
}

func (b *bounces) read() api.MailBouncesStatus {
	b.Helper()
	o, err := api.Settings[api.StoredMailSettings](context.Background(), b.store, api.KindMailSettings, api.MailBouncesID)
	if err != nil || o.Status.Bounces == nil {
		b.Fatalf("status of returned mail = %+v, error %v", o.Status, err)
	}
	return *o.Status.Bounces
}

// TestBounces: a message that a mail server has accepted and returns counts as returned,
// once; nothing else that lies in the mailbox changes anything.
func TestBounces(t *testing.T) {
	for _, security := range []api.MailSecurity{api.MailTLS, api.MailSTARTTLS} {
		t.Run(string(security), func(t *testing.T) {
			b := newBounces(t, security)
			b.sent("mail-1", "ann@example.com")
			b.sent("mail-2", "ann@example.com")
			b.sent("mail-3", "bob@example.com")
			b.dovecot.deliver("1", "From: ann@example.com\r\nSubject: Re: Your invoice\r\n\r\nWhat is this?\r\n")
			b.dovecot.deliver("2", swapped("mail-1@", "mail-3@")) // forged: mail-3 was not sent to Ann
			b.dovecot.deliver("3", swapped("mail-1@", "mail-2@", "Action: failed", "Action: delayed"))
			b.dovecot.deliver("4", swapped("mail-1@example.com", "mail-1@example.net"))
			b.step()
			for _, id := range []string{"mail-1", "mail-2", "mail-3"} {
				if st := b.message(id).Status; st.State != api.MailSent {
					t.Errorf("status of %s = %+v, want Sent", id, st)
				}
			}
			b.dovecot.deliver("5", postfix)
			b.dovecot.deliver("6", strings.Replace(postfix, "Text\r\n", strings.Repeat("A long text.\r\n", 100_000), 1)) // again, and longer than what is read
			b.step()
			if st := b.message("mail-1").Status; st.State != api.MailBounced || st.LastError != annIsUnknown().failed[0].reason || st.DoneAt == nil {
				t.Errorf("status of the returned message = %+v, want Bounced and the server's reason", st)
			}
			if st := b.read(); st.Bounced != 1 || st.BouncedAt == nil || st.UID != 6 || st.Validity == 0 || st.LastError != "" {
				t.Errorf("status = %+v, want one returned message, and all 6 read", st)
			}
			if s, there := b.suppression("ann@example.com"); !there || s.Status.SuppressedAt == nil || s.Status.Message != "mail-1" {
				t.Errorf("suppression of the address = %+v, want since mail-1 was returned: there is no such user", s)
			}
			at := b.store.Revision()
			b.step()
			if got := b.store.Revision(); got != at {
				t.Errorf("revision after a visit without news = %d, want %d", got, at)
			}
			if unseen, err := os.ReadDir(filepath.Join(b.dovecot.box, "new")); err != nil || len(unseen) != 6 {
				t.Errorf("%d messages in the mailbox are new, error %v, want all 6", len(unseen), err)
			}
		})
	}
}

// TestBouncesOfManyVisits checks that more messages than one visit reads are read by the
// next, and that a mailbox that was created again is read from its beginning.
func TestBouncesOfManyVisits(t *testing.T) {
	b := newBounces(t, api.MailTLS)
	for n := range perVisit + 1 {
		id := fmt.Sprintf("mail-%d", n)
		b.sent(id, "ann@example.com")
		b.dovecot.deliver(fmt.Sprintf("%03d", n), swapped("mail-1@", id+"@"))
	}
	if more := b.step(); !more || b.read().Bounced != perVisit {
		t.Errorf("after the first visit: more = %v, status %+v, want %d returned and more to read", more, b.read(), perVisit)
	}
	if more := b.step(); more || b.read().Bounced != perVisit+1 {
		t.Errorf("after the second visit: more = %v, status %+v, want %d returned", more, b.read(), perVisit+1)
	}
	if err := os.RemoveAll(b.dovecot.box); err != nil {
		t.Fatal(err)
	}
	b.dovecot.makeBox(2)
	b.sent("mail-new", "ann@example.com")
	b.dovecot.deliver("1", swapped("mail-1@", "mail-new@"))
	b.step()
	if st := b.read(); st.Validity != 2 || st.UID != 1 || b.message("mail-new").Status.State != api.MailBounced {
		t.Errorf("status of a new mailbox = %+v, message %+v, want validity 2, UID 1 and a returned message", st, b.message("mail-new").Status)
	}
}

// TestUnreadableMailbox checks what is reported about a mailbox that cannot be read, when
// it is read again, and that the settings have an effect at once.
func TestUnreadableMailbox(t *testing.T) {
	b := newBounces(t, api.MailTLS)
	good := *b.dovecot.settings(api.MailTLS)
	endless := newFakeServer(t, []string{strings.Repeat("x", 2*visitBytes)}).(*net.TCPAddr).Port
	for what, c := range map[string]struct {
		change func(*api.MailBounces)
		want   string
	}{
		"wrong password":      {func(s *api.MailBounces) { s.Password = "wrong" }, "sign in as cloud"},
		"no such mailbox":     {func(s *api.MailBounces) { s.Mailbox = "Bounces" }, "open mailbox Bounces"},
		"unknown certificate": {func(s *api.MailBounces) { s.Server = "127.0.0.1" }, "certificate"},
		"nobody listens":      {func(s *api.MailBounces) { s.Port = 1 }, "connect to localhost:1"},
		"TLS on a plain port": {func(s *api.MailBounces) { s.Port = b.dovecot.plain }, "connect"},
		"endless line":        {func(s *api.MailBounces) { s.Port, s.Security = endless, api.MailSTARTTLS }, "reply is too long"},
	} {
		s := good
		c.change(&s)
		b.set(&s)
		before := b.store.Revision()
		b.step()
		st := b.read()
		if st.Attempts == 0 || st.NextAt == nil || !strings.Contains(st.LastError, c.want) || len(st.LastError) > 2*maxReason {
			t.Errorf("%s: status = %+v, want an attempt, the next one, and an error with %q", what, st, c.want)
		}
		if b.step(); b.store.Revision() != before+1 {
			t.Errorf("%s: the mailbox was read again before its time", what)
		}
	}
	b.set(&good)
	b.step()
	if st := b.read(); st.Attempts != 0 || st.LastError != "" || st.NextAt != nil {
		t.Errorf("status after the settings were mended = %+v, want no error", st)
	}
}
