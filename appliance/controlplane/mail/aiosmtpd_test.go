package mail

import (
	"bytes"
	"encoding/json"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
)

// python is Debian's interpreter, not another one on the PATH, because it has Debian's
// packages.
const python = "/usr/bin/python3"

// readMaildir is a Python program that prints the messages in a Maildir.
const readMaildir = `
import email, email.policy, json, mailbox, sys
out = []
for m in mailbox.Maildir(sys.argv[1], factory=None):
    m = email.message_from_bytes(m.as_bytes(), policy=email.policy.default)
    out.append({"id": m["Message-ID"], "from": str(m["From"]), "to": str(m["To"]), "subject": str(m["Subject"]), "defects": [str(d) for d in m.defects],
        "text": m.get_body(("plain",)).get_content(), "html": m.get_body(("html",)).get_content()})
json.dump(out, sys.stdout)
`

// An independent server, Debian's aiosmtpd (installer/dev/setup.sh), accepts a message,
// and Python's email package reads the intended content from it.
func TestAiosmtpd(t *testing.T) {
	at, err := net.ResolveTCPAddr("tcp", port.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	box := filepath.Join(t.TempDir(), "box")
	var output bytes.Buffer
	server := exec.Command(python, "-m", "aiosmtpd", "-n", "-l", at.String(), "-c", "aiosmtpd.handlers.Mailbox", box)
	server.Stdout, server.Stderr = &output, &output
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	h := newFixture(t)
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindBranding, ID: api.BrandingID, Name: "branding", Expect: api.AnyRevision,
		Data: api.Encode(api.BrandingSpec{ProductName: "Müller & Söhne, GPU", AccentColor: "#0b5cad", SupportEmail: "hilfe@example.com"})})
	h.configure(at, func(s *api.MailSettingsSpec) { s.Language = api.MailGerman })
	h.queue("mail-1", api.MailMessageSpec{Type: api.MailTypeBudget, To: "ann@example.com", Data: map[string]string{"organization": "acme <b>", "budget": "großes Budget", "month": "2026-03", "percent": "80"}})
	h.run(h.store, nil)
	h.until("mail-1 is sent", func() bool { return h.message("mail-1").Status.State == api.MailSent })
	raw, err := exec.Command(python, "-c", readMaildir, box).Output()
	if err != nil {
		t.Fatalf("read the mailbox: %v\n%s", err, output.String())
	}
	var got []struct {
		ID, From, To, Subject, Text, HTML string
		Defects                           []string
	}
	if err := json.Unmarshal(raw, &got); err != nil || len(got) != 1 {
		t.Fatalf("mailbox = %s, %v; want one message", raw, err)
	}
	m := got[0]
	if m.ID != "<mail-1@example.com>" || !strings.HasSuffix(m.From, "<cloud@example.com>") || !strings.Contains(m.From, "Müller & Söhne, GPU") || m.To != "<ann@example.com>" && m.To != "ann@example.com" ||
		m.Subject != "Budget großes Budget: 80 % verbraucht" || len(m.Defects) > 0 {
		t.Errorf("message = %+v, want mail-1 from cloud@example.com about the budget, without defects", m)
	}
	if !strings.Contains(m.Text, "acme <b> hat 80 % des Budgets großes Budget für 2026-03 verbraucht.") || !strings.Contains(m.HTML, "acme &lt;b&gt; hat 80 %") || !strings.Contains(m.HTML, "#0b5cad") {
		t.Errorf("text =\n%s\nHTML =\n%s\nwant the used budget, escaped in HTML", m.Text, m.HTML)
	}
}
