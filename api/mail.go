package api

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// The mail settings are stored as three objects, so that the leader's status reports do
// not conflict with an operator's changes, nor with each other.
const (
	MailSettingsID = "mailsettings-000000000000"
	MailStatusID   = "mailsettings-000000000001" // the status of sending; its spec is empty
	MailBouncesID  = "mailsettings-000000000002" // the status of reading returned mail; its spec is empty
)

// MailSecurity is how a connection to the mail server is encrypted.
type MailSecurity string

// Securities.
const (
	MailSTARTTLS MailSecurity = "starttls"
	MailTLS      MailSecurity = "tls"
	MailPlain    MailSecurity = "none"
)

// MailLanguage is a language that templates are written in.
type MailLanguage string

// Languages.
const (
	MailEnglish MailLanguage = "en"
	MailGerman  MailLanguage = "de"
)

// MailType is the occasion of a message.
type MailType string

// Types of messages.
const (
	MailTypeTest          MailType = "test"
	MailTypePasswordReset MailType = "password-reset"
	MailTypeInvitation    MailType = "invitation"
	MailTypeSignUp        MailType = "sign-up"
	MailTypeSignUpKnown   MailType = "sign-up-known"
	MailTypeInvoice       MailType = "invoice"
	MailTypeBilling       MailType = "billing"
	MailTypeBudget        MailType = "budget"
	MailTypeQueue         MailType = "queue"
	MailTypeTopUp         MailType = "top-up"
	MailTypeAutoPay       MailType = "auto-pay"
	MailTypeRefund        MailType = "refund"
	MailTypeAlerts        MailType = "alerts"
)

// MailState is the state of a message. A message without one is waiting.
type MailState string

// States of messages.
const (
	MailWaiting MailState = "Waiting"
	MailSent    MailState = "Sent"
	MailFailed  MailState = "Failed"
	MailBounced MailState = "Bounced"
)

// Limits of the outbox.
const (
	// MaxMailMessages limits the waiting messages; beyond it no more are queued.
	MaxMailMessages = 10_000
	// MaxMailData limits the values of one message, in bytes in total.
	MaxMailData = 16 << 10

	maxMailRecipients = 16
	maxMailPerMinute  = 6000
	defaultPerMinute  = 60
)

// MailSettingsSpec is the settings in the form that the store keeps.
type MailSettingsSpec struct {
	Enabled   bool         `json:"enabled,omitempty"`
	Server    string       `json:"server,omitempty"`
	Port      int          `json:"port,omitempty"`
	Security  MailSecurity `json:"security,omitempty"`
	User      string       `json:"user,omitempty"`
	Password  string       `json:"password,omitempty"` // sealed
	Sender    string       `json:"sender,omitempty"`
	PortalURL string       `json:"portalURL,omitempty"`
	Language  MailLanguage `json:"language,omitempty"`
	PerMinute int          `json:"perMinute,omitempty"`
	AlertsTo  []string     `json:"alertsTo,omitempty"`
	// Bounces is the mailbox of returned mail; nil: none is read.
	Bounces *MailBouncesSpec `json:"bounces,omitempty"`
	// EventsAfter is the event sequence at the time when mail was enabled; only later
	// events send messages.
	EventsAfter int64 `json:"eventsAfter,omitempty"`
}

// MailBouncesSpec is a mailbox in the form that the store keeps.
type MailBouncesSpec struct {
	Server   string       `json:"server"`
	Port     int          `json:"port"`
	Security MailSecurity `json:"security"`
	User     string       `json:"user"`
	Password string       `json:"password"` // sealed
	Mailbox  string       `json:"mailbox"`
}

// StoredMailSettings is one of the three objects. The leader writes the status of the
// second and the third.
type StoredMailSettings struct {
	Kind   Kind
	Meta   Meta
	Spec   MailSettingsSpec
	Status MailStatus
}

// View returns what operators may read: everything except the password.
func (m StoredMailSettings) View(status MailStatus) MailSettings {
	s := m.Spec
	out := MailSettings{Revision: m.Meta.Revision, Enabled: s.Enabled, Server: s.Server, Port: s.Port, Security: s.Security, User: s.User,
		HasPassword: s.Password != "", Sender: s.Sender, PortalURL: s.PortalURL, Language: s.Language, PerMinute: s.PerMinute, AlertsTo: s.AlertsTo, Status: status}
	if b := s.Bounces; b != nil {
		out.Bounces = &MailBounces{Server: b.Server, Port: b.Port, Security: b.Security, User: b.User, HasPassword: b.Password != "", Mailbox: b.Mailbox}
	}
	return out
}

// Spec returns the settings in a client's request, with defaults for what it left out.
func (s MailSettings) Spec() MailSettingsSpec {
	out := MailSettingsSpec{Enabled: s.Enabled, Server: s.Server, Port: s.Port, Security: cmp.Or(s.Security, MailSTARTTLS), User: s.User, Password: s.Password,
		Sender: Login(s.Sender), PortalURL: s.PortalURL, Language: cmp.Or(s.Language, MailEnglish), PerMinute: cmp.Or(s.PerMinute, defaultPerMinute)}
	if out.Port == 0 {
		out.Port = 587
		if out.Security == MailTLS {
			out.Port = 465
		}
	}
	for _, to := range s.AlertsTo {
		out.AlertsTo = append(out.AlertsTo, Login(to))
	}
	if b := s.Bounces; b != nil {
		out.Bounces = &MailBouncesSpec{Server: b.Server, Port: b.Port, Security: cmp.Or(b.Security, MailTLS), User: b.User, Password: b.Password, Mailbox: cmp.Or(b.Mailbox, "INBOX")}
		if out.Bounces.Port == 0 {
			out.Bounces.Port = map[MailSecurity]int{MailSTARTTLS: 143}[out.Bounces.Security]
		}
		out.Bounces.Port = cmp.Or(out.Bounces.Port, 993)
	}
	return out
}

// SameServer reports whether the password for s may also be used for t.
func (s MailSettingsSpec) SameServer(t MailSettingsSpec) bool {
	return s.Server == t.Server && s.Port == t.Port && s.Security == t.Security && s.User == t.User
}

// SameServer reports whether the password for s may also be used for t, which may be nil.
func (s MailBouncesSpec) SameServer(t *MailBouncesSpec) bool {
	return t != nil && s.Server == t.Server && s.Port == t.Port && s.Security == t.Security && s.User == t.User
}

var hostPattern = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$`)

// ValidateMailSettings checks settings that Spec returned.
func ValidateMailSettings(s MailSettingsSpec) error {
	var bad faults
	given := func(field, value string) bool {
		if value == "" && s.Enabled {
			bad.note(invalid(field, "must not be empty while mail is enabled"))
		}
		return value != ""
	}
	if given("server", s.Server) {
		bad.note(validateMailServer("server", s.Server))
	}
	bad.note(validateMailPort("port", s.Port), validateMailSignIn(s), validateMailBounces(s.Bounces))
	if given("sender", s.Sender) {
		bad.note(validateMailAddress("sender", s.Sender))
	}
	if given("portalURL", s.PortalURL) {
		bad.note(validatePortalURL(s.PortalURL))
	}
	bad.note(ValidateMailLanguage("language", s.Language))
	if s.PerMinute < 1 || s.PerMinute > maxMailPerMinute {
		bad.note(invalid("perMinute", "must be between 1 and %d", maxMailPerMinute))
	}
	if len(s.AlertsTo) > maxMailRecipients {
		bad.note(invalid("alertsTo", "must have at most %d addresses", maxMailRecipients))
		return bad.err()
	}
	for i, to := range s.AlertsTo {
		bad.note(validateMailAddress(fmt.Sprintf("alertsTo[%d]", i), to))
	}
	return bad.err()
}

func validateMailServer(field, server string) error {
	if net.ParseIP(server) == nil && !hostPattern.MatchString(server) {
		return invalid(field, "%q is not a valid host name or address", clip(server)).WithHint("e.g. mail.example.com, without the port")
	}
	return nil
}

func validateMailPort(field string, port int) error {
	if port < 1 || port > 65535 {
		return invalid(field, "must be between 1 and 65535")
	}
	return nil
}

// validateMailBounces checks the mailbox of returned mail.
func validateMailBounces(s *MailBouncesSpec) error {
	const most = 256
	if s == nil {
		return nil
	}
	var bad faults
	bad.note(validateMailServer("bounces.server", s.Server), validateMailPort("bounces.port", s.Port))
	if s.Security != MailSTARTTLS && s.Security != MailTLS {
		bad.note(invalid("bounces.security", "%q is not supported", clip(string(s.Security))).WithHint("want starttls or tls"))
	}
	for _, f := range []struct{ field, value string }{{"user", s.User}, {"mailbox", s.Mailbox}} {
		if f.value == "" || len(f.value) > most || hasControl(f.value) {
			bad.note(invalid("bounces."+f.field, "must have between 1 and %d bytes and no control characters", most))
		}
	}
	if s.Password == "" {
		bad.note(invalid("bounces.password", "must not be empty").WithHint("give it again after a change of server, port, security or user"))
	}
	return bad.err()
}

// validateMailSignIn checks security, user and password.
func validateMailSignIn(s MailSettingsSpec) error {
	const most = 256
	switch {
	case s.Security != MailSTARTTLS && s.Security != MailTLS && s.Security != MailPlain:
		return invalid("security", "%q is not supported", clip(string(s.Security))).WithHint("want starttls, tls or none")
	case len(s.User) > most || hasControl(s.User):
		return invalid("user", "must have at most %d bytes and no control characters", most)
	case s.User == "" && s.Password != "":
		return invalid("user", "must not be empty when there is a password")
	case s.User != "" && s.Password == "":
		return invalid("password", "must not be empty when there is a user").WithHint("give it again after a change of server, port, security or user")
	case s.User != "" && s.Security == MailPlain:
		return invalid("security", "must not be none when there is a user: the password would be sent in the clear").WithHint("use starttls or tls, or a server that needs no user")
	}
	return nil
}

// ValidateMailPassword checks a password before it is sealed.
func ValidateMailPassword(field, password string) error {
	const most = 256
	if len(password) > most || hasControl(password) {
		return invalid(field, "must have at most %d bytes and no control characters", most)
	}
	return nil
}

// ValidateMailLanguage checks a language that was chosen.
func ValidateMailLanguage(field string, l MailLanguage) error {
	if l != MailEnglish && l != MailGerman {
		return invalid(field, "%q is not supported", clip(string(l))).WithHint("want en or de")
	}
	return nil
}

func validateMailAddress(field, address string) error {
	if len(address) > maxLoginBytes || !loginPattern.MatchString(address) {
		return invalid(field, "%q is not a valid e-mail address", clip(address)).WithHint("e.g. cloud@example.com, without a name")
	}
	return nil
}

// ValidateMailTo checks the address of a recipient.
func ValidateMailTo(address string) error { return validateMailAddress("to", address) }

// validatePortalURL checks the base URL of links to the portal.
func validatePortalURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || len(s) > maxSupportURL || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || hasControl(s) {
		return invalid("portalURL", "%q is not a valid address of the portal", clip(s)).WithHint("e.g. https://cloud.example.com")
	}
	return nil
}

// MailIDOf returns the ID of the nth message for an event. It depends on nothing else,
// so that no message is created twice.
func MailIDOf(event string, n int) string {
	return fmt.Sprintf("%s-%s-%d", KindMailMessage.Info().IDPrefix, strings.TrimPrefix(event, "evt-"), n)
}

// Done reports whether a message was sent or has failed for good.
func (m MailMessage) Done() bool {
	return m.Status.State == MailSent || m.Undelivered()
}

// Undelivered reports whether a message was refused, given up or returned.
func (m MailMessage) Undelivered() bool {
	return m.Status.State == MailFailed || m.Status.State == MailBounced
}

// Until returns when a message that was not sent expires.
func (m MailMessage) Until() time.Time {
	if m.Spec.ExpiresAt != nil {
		return *m.Spec.ExpiresAt
	}
	return m.Meta.CreatedAt.Add(24 * time.Hour)
}

// QueueMail returns the command that adds a new message to the outbox.
func QueueMail(id string, s MailMessageSpec) Command {
	return Command{Op: OpPutSpec, Kind: KindMailMessage, ID: id, Name: id, Data: Encode(s)}
}
