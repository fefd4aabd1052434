package mail

import "github.com/basalt-gpu/basalt/api"

// wording is what a message says in one language: text/template over the message's
// data, with product, to, portal and expires. A paragraph that comes out empty is left
// out.
type wording struct {
	subject    string
	paragraphs []string
	action     string // what the link is called; empty: there is none
	path       string // of the portal
}

// wordings of all types, in all languages.
var wordings = map[api.MailType]map[api.MailLanguage]wording{
	api.MailTypeTest: {
		api.MailEnglish: {subject: "Test message from {{.product}}", paragraphs: []string{
			"This is a test message. {{.product}} can send mail.",
		}},
		api.MailGerman: {subject: "Testnachricht von {{.product}}", paragraphs: []string{
			"Das ist eine Testnachricht. {{.product}} kann E-Mails senden.",
		}},
	},
	api.MailTypePasswordReset: {
		api.MailEnglish: {subject: "Set a new password for {{.product}}", action: "Set a new password", path: "/password", paragraphs: []string{
			"Somebody, probably you, asked for a new password for {{.to}}.",
			"The link can be used once, until {{.expires}}. Until you set another, your password stays as it is.",
			"If you did not ask for it, you need not do anything.",
		}},
		api.MailGerman: {subject: "Neues Passwort für {{.product}}", action: "Neues Passwort setzen", path: "/password", paragraphs: []string{
			"Jemand, wahrscheinlich Sie, hat ein neues Passwort für {{.to}} angefordert.",
			"Der Link kann einmal verwendet werden, bis {{.expires}}. Solange Sie kein anderes setzen, bleibt Ihr Passwort, wie es ist.",
			"Wenn Sie das nicht waren, müssen Sie nichts tun.",
		}},
	},
	api.MailTypeInvitation: {
		api.MailEnglish: {subject: "Your account at {{.product}}", action: "Set your password", path: "/password", paragraphs: []string{
			"An account at {{.product}} was made for {{.to}}.",
			"Set your password to sign in. With that you also confirm that this address is yours. The link can be used once, until {{.expires}}.",
			"If you did not expect this message, ignore it: nothing happens without you.",
		}},
		api.MailGerman: {subject: "Ihr Konto bei {{.product}}", action: "Passwort setzen", path: "/password", paragraphs: []string{
			"Für {{.to}} wurde ein Konto bei {{.product}} angelegt.",
			"Setzen Sie Ihr Passwort, um sich anzumelden. Damit bestätigen Sie auch, dass diese Adresse Ihnen gehört. Der Link kann einmal verwendet werden, bis {{.expires}}.",
			"Wenn Sie diese Nachricht nicht erwartet haben, ignorieren Sie sie: Ohne Sie geschieht nichts.",
		}},
	},
}

// foot is what stands below every message.
func foot(l api.MailLanguage, brand api.Branding, values map[string]string) []string {
	about, help := "{{.product}} has sent this message to {{.to}}.", "Help"
	if l == api.MailGerman {
		about, help = "{{.product}} hat diese Nachricht an {{.to}} gesendet.", "Hilfe"
	}
	out := []string{filled(about, values)}
	if brand.SupportEmail != "" {
		out = append(out, help+": "+brand.SupportEmail)
	}
	if brand.SupportURL != "" {
		out = append(out, help+": "+brand.SupportURL)
	}
	return append(out, values["portal"])
}
