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

// The mail settings are stored as two objects, so that the leader's status reports do
// not conflict with an operator's changes.
const (
	MailSettingsID = "mailsettings-000000000000"
	MailStatusID   = "mailsettings-000000000001" // its status; its spec is empty
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
	MailTypeAlerts        MailType = "alerts"
)

// MailState is the state of a message. A message without one is waiting.
type MailState string

// States of messages.
const (
	MailWaiting MailState = "Waiting"
	MailSent    MailState = "Sent"
	MailFailed  MailState = "Failed"
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
	// EventsAfter is the event sequence at the time when mail was enabled; only later
	// events send messages.
	EventsAfter int64 `json:"eventsAfter,omitempty"`
}

// StoredMailSettings is either of the two objects. The leader writes the status of the
// second.
type StoredMailSettings struct {
	Kind   Kind
	Meta   Meta
	Spec   MailSettingsSpec
	Status MailStatus
}

// View returns what operators may read: everything except the password.
func (m StoredMailSettings) View(status MailStatus) MailSettings {
	s := m.Spec
	return MailSettings{Revision: m.Meta.Revision, Enabled: s.Enabled, Server: s.Server, Port: s.Port, Security: s.Security, User: s.User,
		HasPassword: s.Password != "", Sender: s.Sender, PortalURL: s.PortalURL, Language: s.Language, PerMinute: s.PerMinute, AlertsTo: s.AlertsTo, Status: status}
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
	return out
}

// SameServer reports whether the password for s may also be used for t.
func (s MailSettingsSpec) SameServer(t MailSettingsSpec) bool {
	return s.Server == t.Server && s.Port == t.Port && s.Security == t.Security && s.User == t.User
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
	if given("server", s.Server) && net.ParseIP(s.Server) == nil && !hostPattern.MatchString(s.Server) {
		bad.note(invalid("server", "%q is not a valid host name or address", clip(s.Server)).WithHint("e.g. smtp.example.com, without the port"))
	}
	if s.Port < 1 || s.Port > 65535 {
		bad.note(invalid("port", "must be between 1 and 65535"))
	}
	bad.note(validateMailSignIn(s))
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
func ValidateMailPassword(password string) error {
	const most = 256
	if len(password) > most || hasControl(password) {
		return invalid("password", "must have at most %d bytes and no control characters", most)
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
	return m.Status.State == MailSent || m.Status.State == MailFailed
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
