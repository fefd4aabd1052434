package mail

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"net/textproto"
	"strings"
)

const (
	maxReportParts      = 8
	maxReportRecipients = 16 // as many as a message of the cluster can have
	maxReportPart       = 64 << 10
)

// deliveryReport is what a mail server reports about a message that it could not deliver
// (RFC 3464, "An Extensible Message Format for Delivery Status Notifications").
type deliveryReport struct {
	messageID string // of the message that was returned
	failed    []failedRecipient
}

// failedRecipient is a recipient to whom a message was not delivered for good.
type failedRecipient struct {
	addresses []string // the final and the original one, in lower case
	status    string   // RFC 3463: 5.1.1
	reason    string
}

// parseReport returns the report that a message contains. ok is false if it contains none,
// or none of a failure. The message may be cut off at any byte behind the report and the
// Message-ID.
func parseReport(raw []byte) (r deliveryReport, ok bool) {
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return r, false
	}
	media, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || media != "multipart/report" || !strings.EqualFold(params["report-type"], "delivery-status") {
		return r, false
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for range maxReportParts {
		p, err := parts.NextRawPart()
		if err != nil {
			break // the end, or where the message was cut off
		}
		r.read(p)
	}
	return r, r.messageID != "" && len(r.failed) > 0
}

// read adds what a part of the report says.
func (r *deliveryReport) read(p *multipart.Part) {
	media, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
	if err != nil {
		return
	}
	body := io.LimitReader(decoded(p), maxReportPart)
	switch media {
	case "message/delivery-status", "message/global-delivery-status": // the latter: RFC 6533
		r.failed = failedRecipients(body)
	case "message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers": // RFC 6522, section 3
		header, _ := textproto.NewReader(bufio.NewReader(body)).ReadMIMEHeader() // what was read before an error counts
		r.messageID = strings.TrimSpace(header.Get("Message-Id"))
	}
}

// decoded returns the body of a part without its transfer encoding.
func decoded(p *multipart.Part) io.Reader {
	switch strings.ToLower(strings.TrimSpace(p.Header.Get("Content-Transfer-Encoding"))) {
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, p)
	case "quoted-printable":
		return quotedprintable.NewReader(p)
	}
	return p
}

// failedRecipients reads a delivery status: a block of fields about the message, and one
// about each recipient.
func failedRecipients(body io.Reader) (failed []failedRecipient) {
	blocks := textproto.NewReader(bufio.NewReader(body))
	for n := 0; n <= maxReportRecipients; n++ {
		fields, err := blocks.ReadMIMEHeader()
		if n > 0 && strings.EqualFold(value(fields, "Action"), "failed") {
			failed = append(failed, recipientOf(fields))
		}
		if err != nil {
			break
		}
	}
	return failed
}

func recipientOf(fields textproto.MIMEHeader) (f failedRecipient) {
	for _, name := range []string{"Final-Recipient", "Original-Recipient"} {
		if kind, address, ok := strings.Cut(value(fields, name), ";"); ok && isAddress(kind) {
			f.addresses = append(f.addresses, strings.ToLower(strings.TrimSpace(address)))
		}
	}
	said := value(fields, "Diagnostic-Code")
	if _, text, ok := strings.Cut(said, ";"); ok { // its type, "smtp"
		said = strings.TrimSpace(text)
	}
	f.status, _, _ = strings.Cut(value(fields, "Status"), " ") // a comment may follow
	if !strings.Contains(said, f.status) {
		said = strings.TrimSpace(f.status + " " + said)
	}
	f.reason = reason("returned", errors.New(said)).Error()
	return f
}

// isAddress reports whether the type of an address is that of Internet mail (RFC 3464,
// section 2.1.2; RFC 6533, section 3).
func isAddress(kind string) bool {
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "rfc822" || kind == "utf-8"
}

// value returns the value of a field. A field that is repeated has the first.
func value(fields textproto.MIMEHeader, name string) string {
	return strings.TrimSpace(fields.Get(name))
}
