package mail

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	htmltemplate "html/template"
	"net/mail"
	"net/url"
	"strings"
	"text/template"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"github.com/basalt-gpu/basalt/api"
)

var errSealed = errors.New("a secret cannot be decrypted: give it again")

// maxValue is how many bytes of one value are included.
const maxValue = 4000

// composed is the final content of a message.
type composed struct {
	id         string // without angle brackets
	from, to   mail.Address
	replyTo    string // address that answers go to: the support of the branding; empty: the sender
	subject    string
	text, html string
	date       time.Time
	language   api.MailLanguage
	file       *attachment // nil: none
}

// page is the data of both layouts.
type page struct {
	Language   api.MailLanguage
	Product    string
	Color      string
	Subject    string
	Paragraphs []string
	Action     string // text of the link
	Link       string
	Foot       []string
}

//go:embed layout.html.tmpl
var htmlSource string

//go:embed layout.txt.tmpl
var textSource string

var (
	htmlLayout = htmltemplate.Must(htmltemplate.New("html").Parse(htmlSource))
	textLayout = template.Must(template.New("text").Parse(textSource))
)

// compose composes a message; token is part of its link.
func compose(m api.MailMessage, s api.MailSettingsSpec, of api.NearestBranding, token string) composed {
	brand, portal := of.View(), of.Portal(s.PortalURL)
	language := cmp.Or(m.Spec.Language, s.Language, api.MailEnglish)
	w, known := wordings[m.Spec.Type][language]
	if !known {
		language, w = api.MailEnglish, wordings[m.Spec.Type][api.MailEnglish]
	}
	product := oneLine(cmp.Or(brand.ProductName, "Basalt"))
	values := map[string]string{}
	for name, v := range m.Spec.Data {
		values[name] = clipped(v)
	}
	values["product"], values["to"], values["portal"] = product, m.Spec.To, portal
	if m.Spec.ExpiresAt != nil {
		values["expires"] = minute(m.Spec.ExpiresAt)
	}
	p := page{Language: language, Product: product, Color: cmp.Or(brand.AccentColor, "#0b5cad"), Subject: oneLine(filled(w.subject, values))}
	for _, text := range w.paragraphs {
		if text = strings.TrimSpace(filled(text, values)); text != "" {
			p.Paragraphs = append(p.Paragraphs, text)
		}
	}
	if w.action != "" && portal != "" {
		p.Action, p.Link = w.action, link(portal, filled(w.path, values), token)
	}
	p.Foot = foot(language, brand, values)
	c := composed{id: m.Meta.ID + "@" + domainOf(s.Sender), from: mail.Address{Name: product, Address: s.Sender}, to: mail.Address{Address: m.Spec.To},
		subject: p.Subject, date: m.Meta.CreatedAt, language: language}
	if to, err := mail.ParseAddress(brand.SupportEmail); err == nil {
		c.replyTo = to.Address
	}
	var text, html bytes.Buffer
	// The templates are part of the program and write to memory: they do not fail.
	_ = textLayout.Execute(&text, p)
	_ = htmlLayout.Execute(&html, p)
	c.text, c.html = text.String(), html.String()
	return c
}

// message returns the message for go-mail.
func (c composed) message() (*gomail.Msg, error) {
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	m.FromMailAddress(&c.from)
	if err := m.To(c.to.Address); err != nil {
		return nil, err
	}
	if c.replyTo != "" {
		if err := m.ReplyTo(c.replyTo); err != nil {
			return nil, err
		}
	}
	m.Subject(c.subject)
	m.SetMessageIDWithValue(c.id)
	m.SetDateWithValue(c.date.UTC())
	m.SetGenHeader("Content-Language", string(c.language))
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic responses
	m.SetBodyString(gomail.TypeTextPlain, c.text)
	m.AddAlternativeString(gomail.TypeTextHTML, c.html)
	if c.file != nil {
		if err := m.AttachReader(c.file.name, bytes.NewReader(c.file.content), gomail.WithFileContentType("application/pdf")); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// link returns an address of the portal. The token is behind the '#', which browsers do
// not send to servers.
func link(portal, path, token string) string {
	at := strings.TrimRight(portal, "/") + "/#" + path
	if token != "" {
		at += "?token=" + url.QueryEscape(token)
	}
	return at
}

// filled returns a text with values inserted; missing values are empty.
func filled(text string, values map[string]string) string {
	t, err := template.New("").Option("missingkey=zero").Parse(text)
	if err != nil {
		return text // a test parses all texts
	}
	var out bytes.Buffer
	_ = t.Execute(&out, values)
	return out.String()
}

// oneLine returns a text without characters that would end a line, or a header, and
// without what could be read as an encoded word (RFC 2047), which can contain both.
func oneLine(s string) string {
	s = strings.ReplaceAll(s, "=?", "= ?")
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// clipped returns a value from an untrusted source: of control characters only line
// breaks are kept, invalid UTF-8 is removed, and its length is limited.
func clipped(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.ToValidUTF8(s[:min(len(s), maxValue)], "")
}
