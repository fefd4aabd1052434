package mail

import "github.com/basalt-gpu/basalt/api"

// wording is the text of a message in one language: text/template over the message's
// data, with product, to, portal and expires. An empty paragraph is omitted.
type wording struct {
	subject    string
	paragraphs []string
	action     string // text of the link; empty: no link
	path       string // path in the portal; a template too
}

// wordings has the texts of all types, in all languages.
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
	api.MailTypeSignUp: {
		api.MailEnglish: {subject: "Confirm your address for {{.product}}", action: "Create your account", path: "/sign-up", paragraphs: []string{
			"Somebody, probably you, wants an account at {{.product}} for {{.to}}.",
			"The link leads to a page on which you create it, until {{.expires}}. Nothing exists before.",
			"If you did not ask for it, you need not do anything.",
		}},
		api.MailGerman: {subject: "Bestätigen Sie Ihre Adresse für {{.product}}", action: "Konto erstellen", path: "/sign-up", paragraphs: []string{
			"Jemand, wahrscheinlich Sie, möchte ein Konto bei {{.product}} für {{.to}}.",
			"Der Link führt zu einer Seite, auf der Sie es erstellen, bis {{.expires}}. Vorher besteht nichts.",
			"Wenn Sie das nicht waren, müssen Sie nichts tun.",
		}},
	},
	api.MailTypeSignUpKnown: {
		api.MailEnglish: {subject: "You have an account at {{.product}}", action: "Sign in", path: "/", paragraphs: []string{
			"Somebody, probably you, wanted another account at {{.product}} for {{.to}}. There is one already.",
			"Sign in with it. If you have forgotten your password, ask for another there.",
			"If you did not ask for it, you need not do anything.",
		}},
		api.MailGerman: {subject: "Sie haben ein Konto bei {{.product}}", action: "Anmelden", path: "/", paragraphs: []string{
			"Jemand, wahrscheinlich Sie, wollte ein weiteres Konto bei {{.product}} für {{.to}}. Es gibt schon eines.",
			"Melden Sie sich damit an. Wenn Sie Ihr Passwort vergessen haben, fordern Sie dort ein neues an.",
			"Wenn Sie das nicht waren, müssen Sie nichts tun.",
		}},
	},
	api.MailTypeInvoice: {
		api.MailEnglish: {subject: "Invoice {{.number}}", action: "Open the invoices", path: "/invoices", paragraphs: []string{
			"Invoice {{.number}} of {{.organization}} was issued: {{.total}}, due on {{.due}}.",
			"{{if eq .autoPay \"later\"}}The amount is too small to be charged by itself: it is charged to your payment card together with other invoices. You need not do anything.{{else if .autoPay}}The amount is charged to your payment card; you need not do anything.{{end}}",
			"It is attached as a PDF. All invoices are in the portal.",
		}},
		api.MailGerman: {subject: "Rechnung {{.number}}", action: "Rechnungen öffnen", path: "/invoices", paragraphs: []string{
			"Die Rechnung {{.number}} für {{.organization}} wurde ausgestellt: {{.total}}, fällig am {{.due}}.",
			"{{if eq .autoPay \"later\"}}Der Betrag ist zu klein, um einzeln abgebucht zu werden: Er wird zusammen mit anderen Rechnungen von Ihrer Zahlungskarte abgebucht. Sie müssen nichts tun.{{else if .autoPay}}Der Betrag wird von Ihrer Zahlungskarte abgebucht; Sie müssen nichts tun.{{end}}",
			"Sie ist als PDF beigefügt. Alle Rechnungen finden Sie im Portal.",
		}},
	},
	api.MailTypeBudget: {
		api.MailEnglish: {subject: "Budget {{.budget}}: {{.percent}} % used", action: "Open usage", path: "/usage", paragraphs: []string{
			"{{.organization}} has used {{.percent}} % of the budget {{.budget}} of {{.month}}.",
		}},
		api.MailGerman: {subject: "Budget {{.budget}}: {{.percent}} % verbraucht", action: "Verbrauch öffnen", path: "/usage", paragraphs: []string{
			"{{.organization}} hat {{.percent}} % des Budgets {{.budget}} für {{.month}} verbraucht.",
		}},
	},
	api.MailTypeTopUp: {
		api.MailEnglish: {subject: "{{if .authentication}}Please confirm a payment{{else}}Automatic top-up failed{{end}}: {{.organization}}", action: "Pay now", path: "{{.path}}", paragraphs: []string{
			"The automatic top-up of {{.organization}} by {{.amount}} has failed. Nothing was charged. The reason: {{.error}}",
			"{{if .authentication}}Your bank wants you to confirm the payment. Pay the amount online: the page leads you through it.{{end}}",
			"{{if .next}}It is tried again at {{.next}}. Please check the card until then, or pay another way.{{else}}It is not tried again until you save the settings of the automatic top-up. Please check the card before.{{end}}",
		}},
		api.MailGerman: {subject: "{{if .authentication}}Bitte bestätigen Sie eine Zahlung{{else}}Automatische Aufladung fehlgeschlagen{{end}}: {{.organization}}", action: "Jetzt bezahlen", path: "{{.path}}", paragraphs: []string{
			"Die automatische Aufladung von {{.organization}} um {{.amount}} ist fehlgeschlagen. Es wurde nichts abgebucht. Der Grund: {{.error}}",
			"{{if .authentication}}Ihre Bank möchte, dass Sie die Zahlung bestätigen. Bezahlen Sie den Betrag online: Die Seite führt Sie hindurch.{{end}}",
			"{{if .next}}Der nächste Versuch ist am {{.next}}. Bitte prüfen Sie bis dahin die Karte, oder zahlen Sie auf anderem Weg.{{else}}Es wird nicht wieder versucht, bis Sie die Einstellungen der automatischen Aufladung speichern. Bitte prüfen Sie vorher die Karte.{{end}}",
		}},
	},
	api.MailTypeAutoPay: {
		api.MailEnglish: {subject: "{{if .authentication}}Please confirm a payment{{else}}Payment failed{{end}}: invoice {{.number}}", action: "Pay now", path: "{{.path}}", paragraphs: []string{
			"Invoice {{.number}} of {{.organization}} could not be charged to your payment card: {{.amount}}. Nothing was charged. The reason: {{.error}}",
			"{{if .authentication}}Your bank wants you to confirm the payment. Pay the amount online: the page leads you through it.{{end}}",
			"{{if .next}}The card is charged again at {{.next}}. Please check the card until then, choose another one, or pay online.{{else}}The card is not charged again for this invoice. Please pay online, or choose another default card, which is then charged at once.{{end}}",
		}},
		api.MailGerman: {subject: "{{if .authentication}}Bitte bestätigen Sie eine Zahlung{{else}}Zahlung fehlgeschlagen{{end}}: Rechnung {{.number}}", action: "Jetzt bezahlen", path: "{{.path}}", paragraphs: []string{
			"Die Rechnung {{.number}} für {{.organization}} konnte nicht von Ihrer Zahlungskarte abgebucht werden: {{.amount}}. Es wurde nichts abgebucht. Der Grund: {{.error}}",
			"{{if .authentication}}Ihre Bank möchte, dass Sie die Zahlung bestätigen. Bezahlen Sie den Betrag online: Die Seite führt Sie hindurch.{{end}}",
			"{{if .next}}Die Karte wird am {{.next}} noch einmal belastet. Bitte prüfen Sie bis dahin die Karte, wählen Sie eine andere oder bezahlen Sie online.{{else}}Die Karte wird für diese Rechnung nicht noch einmal belastet. Bitte bezahlen Sie online, oder wählen Sie eine andere Standardkarte, die dann sofort belastet wird.{{end}}",
		}},
	},
	api.MailTypeRefund: {
		api.MailEnglish: {subject: `{{if eq .state "refunded"}}Refund of {{.amount}}{{else}}A refund of {{.amount}} failed{{end}}: {{.organization}}`, action: "Open the invoices", path: "/invoices", paragraphs: []string{
			`{{if eq .state "refunded"}}A payment of {{.organization}} was refunded: {{.amount}}. The reason: {{.reason}}{{end}}`,
			`{{if and .byCard (eq .state "refunded")}}The amount is returned to the card that was charged. It usually takes 5 to 10 days until the bank shows it.{{end}}`,
			`{{if eq .state "refund_failed"}}The bank did not accept a refund to {{.organization}} of {{.amount}}, whose reason was: {{.reason}} The amount is credit of {{.organization}} again. Please ask us to return it another way.{{end}}`,
		}},
		api.MailGerman: {subject: `{{if eq .state "refunded"}}Erstattung von {{.amount}}{{else}}Eine Erstattung von {{.amount}} ist fehlgeschlagen{{end}}: {{.organization}}`, action: "Rechnungen öffnen", path: "/invoices", paragraphs: []string{
			`{{if eq .state "refunded"}}Eine Zahlung von {{.organization}} wurde erstattet: {{.amount}}. Der Grund: {{.reason}}{{end}}`,
			`{{if and .byCard (eq .state "refunded")}}Der Betrag geht auf die belastete Karte zurück. Meist dauert es 5 bis 10 Tage, bis die Bank ihn anzeigt.{{end}}`,
			`{{if eq .state "refund_failed"}}Die Bank hat eine Erstattung an {{.organization}} von {{.amount}} nicht angenommen. Ihr Grund war: {{.reason}} Der Betrag ist wieder Guthaben von {{.organization}}. Bitte wenden Sie sich an uns, damit wir ihn auf anderem Weg zurückzahlen.{{end}}`,
		}},
	},
	api.MailTypeBilling: {
		api.MailEnglish: {subject: "{{if eq .state \"ok\"}}Thank you for your payment{{else if eq .state \"delete_warning\" \"delete_due\"}}Your data will be deleted{{else}}Payment reminder{{end}}: {{.organization}}", action: "Open the invoices", path: "/invoices", paragraphs: []string{
			`{{if eq .state "ok"}}{{.organization}} has no open amounts any more. Nothing is restricted.{{end}}`,
			`{{if eq .state "warn"}}{{.organization}} has an amount that is due, or what was paid in advance is nearly used up.{{end}}`,
			`{{if eq .state "stop"}}{{.organization}} is behind with a payment. Until it arrives, no new instances are made or started; those that run go on.{{end}}`,
			`{{if eq .state "suspended"}}{{.organization}} is behind with a payment. Its instances were stopped; their data is kept.{{end}}`,
			`{{if eq .state "delete_warning"}}{{.organization}} is behind with a payment. If it does not arrive, instances, volumes, backups and addresses are deleted for good{{if .deleteAt}} on {{.deleteAt}}{{end}}.{{end}}`,
			`{{if eq .state "delete_due"}}The payment of {{.organization}} did not arrive. Its instances, volumes, backups and addresses are being deleted.{{end}}`,
		}},
		api.MailGerman: {subject: "{{if eq .state \"ok\"}}Danke für Ihre Zahlung{{else if eq .state \"delete_warning\" \"delete_due\"}}Ihre Daten werden gelöscht{{else}}Zahlungserinnerung{{end}}: {{.organization}}", action: "Rechnungen öffnen", path: "/invoices", paragraphs: []string{
			`{{if eq .state "ok"}}{{.organization}} hat keine offenen Beträge mehr. Nichts ist eingeschränkt.{{end}}`,
			`{{if eq .state "warn"}}Bei {{.organization}} ist ein Betrag fällig, oder das Guthaben ist fast verbraucht.{{end}}`,
			`{{if eq .state "stop"}}{{.organization}} ist mit einer Zahlung im Rückstand. Bis sie eintrifft, werden keine neuen Instanzen angelegt oder gestartet; laufende laufen weiter.{{end}}`,
			`{{if eq .state "suspended"}}{{.organization}} ist mit einer Zahlung im Rückstand. Die Instanzen wurden gestoppt; ihre Daten bleiben erhalten.{{end}}`,
			`{{if eq .state "delete_warning"}}{{.organization}} ist mit einer Zahlung im Rückstand. Wenn sie nicht eintrifft, werden Instanzen, Volumes, Backups und Adressen{{if .deleteAt}} am {{.deleteAt}}{{end}} endgültig gelöscht.{{end}}`,
			`{{if eq .state "delete_due"}}Die Zahlung von {{.organization}} ist nicht eingetroffen. Instanzen, Volumes, Backups und Adressen werden gelöscht.{{end}}`,
		}},
	},
	api.MailTypeQueue: {
		api.MailEnglish: {subject: `{{if eq .state "placed"}}Instance {{.instance}} starts{{else if eq .state "resized"}}Instance {{.instance}} has its new size{{else}}Instance {{.instance}} was not started in time{{end}}`, action: "Open the instances", path: "/instances", paragraphs: []string{
			`{{if eq .state "placed"}}Instance {{.instance}}{{if .project}} in project {{.project}}{{end}} of {{.organization}} has been in the queue since {{.since}}. A node has room for it now, and it starts.{{end}}`,
			`{{if eq .state "resized"}}Instance {{.instance}}{{if .project}} in project {{.project}}{{end}} of {{.organization}} has been in the queue for its new size since {{.since}}. There is room for it now: the instance has the new size, which is in effect when it is started.{{end}}`,
			`{{if eq .state "queue_expired"}}Instance {{.instance}}{{if .project}} in project {{.project}}{{end}} of {{.organization}} was in the queue until its deadline, {{.until}}. No node had room for it, so it was deleted.{{end}}`,
			`{{if eq .state "queue_expired"}}Its data volumes and floating IPs still exist. To wait longer, create it again.{{end}}`,
		}},
		api.MailGerman: {subject: `{{if eq .state "placed"}}Instanz {{.instance}} startet{{else if eq .state "resized"}}Instanz {{.instance}} hat ihre neue Größe{{else}}Instanz {{.instance}} ist nicht rechtzeitig gestartet{{end}}`, action: "Instanzen öffnen", path: "/instances", paragraphs: []string{
			`{{if eq .state "placed"}}Die Instanz {{.instance}}{{if .project}} im Projekt {{.project}}{{end}} von {{.organization}} war seit {{.since}} in der Warteschlange. Jetzt hat ein Knoten Platz für sie, und sie startet.{{end}}`,
			`{{if eq .state "resized"}}Die Instanz {{.instance}}{{if .project}} im Projekt {{.project}}{{end}} von {{.organization}} war seit {{.since}} für ihre neue Größe in der Warteschlange. Jetzt ist Platz dafür: Die Instanz hat die neue Größe, die gilt, wenn sie gestartet wird.{{end}}`,
			`{{if eq .state "queue_expired"}}Die Instanz {{.instance}}{{if .project}} im Projekt {{.project}}{{end}} von {{.organization}} war bis zu ihrer Frist, {{.until}}, in der Warteschlange. Kein Knoten hatte Platz für sie, deshalb wurde sie gelöscht.{{end}}`,
			`{{if eq .state "queue_expired"}}Ihre Datenvolumes und Floating IPs bestehen weiter. Um länger zu warten, erstellen Sie sie noch einmal.{{end}}`,
		}},
	},
	api.MailTypeAlerts: {
		api.MailEnglish: {subject: "{{.product}}: {{.first}}{{if .more}} (and {{.more}} more){{end}}", action: "Open the alerts", path: "/alerts", paragraphs: []string{
			"These alerts are new:",
			"{{.alerts}}",
			"{{if .unnamed}}And {{.unnamed}} more.{{end}}",
		}},
		api.MailGerman: {subject: "{{.product}}: {{.first}}{{if .more}} (und {{.more}} weitere){{end}}", action: "Warnungen öffnen", path: "/alerts", paragraphs: []string{
			"Diese Warnungen sind neu:",
			"{{.alerts}}",
			"{{if .unnamed}}Und {{.unnamed}} weitere.{{end}}",
		}},
	},
}

// foot returns the lines below every message.
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
