package mail

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// postfix is a report in the form of Postfix' bounce(8): with fields of its own, and a
// folded diagnostic code.
const postfix = "Return-Path: <>\r\nFrom: MAILER-DAEMON@mx.example.net (Mail Delivery System)\r\nSubject: Undelivered Mail Returned to Sender\r\nTo: cloud@example.com\r\n" +
	"MIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=delivery-status;\r\n\tboundary=\"4XYZ.1/mx.example.net\"\r\n\r\nThis is a MIME-encapsulated message.\r\n\r\n" +
	"--4XYZ.1/mx.example.net\r\nContent-Description: Notification\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\nI'm sorry to have to inform you.\r\n\r\n" +
	"--4XYZ.1/mx.example.net\r\nContent-Description: Delivery report\r\nContent-Type: message/delivery-status\r\n\r\n" +
	"Reporting-MTA: dns; mx.example.net\r\nX-Postfix-Queue-ID: 4XYZ\r\nArrival-Date: Mon, 30 Nov 2026 04:00:00 +0000 (UTC)\r\n\r\n" +
	"Final-Recipient: rfc822; Ann@example.org\r\nOriginal-Recipient: rfc822;ann@example.com\r\nAction: failed\r\nStatus: 5.1.1\r\nRemote-MTA: dns; mx.example.org\r\n" +
	"Diagnostic-Code: smtp; 550 5.1.1 <ann@example.org>: Recipient address rejected:\r\n    User unknown\r\n\r\n" +
	"--4XYZ.1/mx.example.net\r\nContent-Description: Undelivered Message\r\nContent-Type: message/rfc822\r\n\r\n" +
	"Received: from leader\r\nSubject: Your invoice\r\nMessage-ID: <mail-1@example.com>\r\nContent-Type: text/plain\r\n\r\nText\r\n\r\n--4XYZ.1/mx.example.net--\r\n"

func annIsUnknown() deliveryReport {
	return deliveryReport{messageID: "<mail-1@example.com>", failed: []failedRecipient{{addresses: []string{"ann@example.org", "ann@example.com"}, status: "5.1.1",
		reason: "returned: 550 5.1.1 <ann@example.org>: Recipient address rejected: User unknown"}}}
}

// swapped returns the report of Postfix with replacements, pairs of old and new text.
func swapped(oldnew ...string) string { return strings.NewReplacer(oldnew...).Replace(postfix) }

func TestParseReport(t *testing.T) {
	headers := "--4XYZ.1/mx.example.net\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <mail-1@example.com>\r\nSubject: cut o"
	timeout := annIsUnknown()
	timeout.failed[0] = failedRecipient{addresses: []string{"ann@example.com"}, status: "4.4.1", reason: "returned: 4.4.1"}
	two := annIsUnknown()
	two.failed = append(two.failed, failedRecipient{addresses: []string{"bob@example.org"}, status: "5.2.2", reason: "returned: 5.2.2 full"})
	for what, c := range map[string]struct {
		raw  string
		want *deliveryReport // nil: none
	}{
		"Postfix":                       {postfix, ptr(annIsUnknown())},
		"lines end with LF":             {strings.ReplaceAll(postfix, "\r\n", "\n"), ptr(annIsUnknown())},
		"headers only, cut off":         {postfix[:strings.Index(postfix, "--4XYZ.1/mx.example.net\r\nContent-Description: Undelivered")] + headers, ptr(annIsUnknown())},
		"given up after days, no reply": {swapped("Final-Recipient: rfc822; Ann@example.org\r\nOriginal-Recipient: rfc822;ann@example.com", "Final-Recipient: RFC822;ann@example.com", "5.1.1\r\n", "4.4.1\r\n", "Diagnostic-Code: smtp; 550 5.1.1 <ann@example.org>: Recipient address rejected:\r\n    User unknown\r\n", ""), &timeout},
		"two recipients": {swapped("User unknown\r\n\r\n", "User unknown\r\n\r\nFinal-Recipient: rfc822;bob@example.org\r\nAction: Failed\r\nStatus: 5.2.2\r\nDiagnostic-Code: x-unix; full\r\n\r\n"+
			"Final-Recipient: rfc822;cy@example.org\r\nAction: relayed\r\nStatus: 2.0.0\r\n\r\n"), &two},
		"base64": {swapped("message/rfc822\r\n\r\nReceived: from leader\r\nSubject: Your invoice\r\nMessage-ID: <mail-1@example.com>\r\nContent-Type: text/plain\r\n\r\nText\r\n",
			"message/global-headers\r\nContent-Transfer-Encoding: base64\r\n\r\nTWVzc2FnZS1JRDogPG1haWwtMUBleGFtcGxlLmNvbT4NCg==\r\n"), ptr(annIsUnknown())},
		"quoted-printable": {swapped("Content-Type: message/delivery-status\r\n", "Content-Type: message/global-delivery-status\r\nContent-Transfer-Encoding: quoted-printable\r\n",
			"Action: failed", "Action: =66ailed", "Ann@example.org", "=41nn@example.org"), ptr(annIsUnknown())},
		"delayed":               {swapped("Action: failed", "Action: delayed"), nil},
		"a receipt":             {swapped("report-type=delivery-status", "report-type=disposition-notification"), nil},
		"without the message":   {swapped("message/rfc822", "text/plain"), nil},
		"without a status":      {swapped("message/delivery-status", "text/plain"), nil},
		"an answer of a person": {"From: ann@example.com\r\nSubject: Re: Your invoice\r\nContent-Type: text/plain\r\n\r\nHello\r\n", nil},
		"no boundary":           {swapped("boundary=\"4XYZ.1/mx.example.net\"", "x=y"), nil},
		"nothing":               {"", nil},
	} {
		got, ok := parseReport([]byte(c.raw))
		switch {
		case c.want == nil && ok:
			t.Errorf("%s: report = %+v, want none", what, got)
		case c.want != nil && (!ok || cmp.Diff(*c.want, got, cmp.AllowUnexported(deliveryReport{}, failedRecipient{})) != ""):
			t.Errorf("%s: report (ok = %v) differs from the wanted one:\n%s", what, ok, cmp.Diff(*c.want, got, cmp.AllowUnexported(deliveryReport{}, failedRecipient{})))
		}
	}
}

// FuzzParseReport checks that a report is within its limits, whatever a server sends.
func FuzzParseReport(f *testing.F) {
	f.Add([]byte(postfix))
	f.Add([]byte(swapped("message/rfc822", "multipart/report; report-type=delivery-status; boundary=x")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, ok := parseReport(raw)
		if !ok {
			return
		}
		if len(r.failed) > maxReportRecipients || len(r.messageID) > maxReportPart {
			t.Errorf("report has %d recipients and a Message-ID of %d bytes, want at most %d and %d", len(r.failed), len(r.messageID), maxReportRecipients, maxReportPart)
		}
		for _, to := range r.failed {
			if len(to.reason) > maxReason+len("returned: ") {
				t.Errorf("reason has %d bytes, want at most %d: %q", len(to.reason), maxReason, to.reason)
			}
		}
	})
}

func ptr[T any](v T) *T { return &v }
