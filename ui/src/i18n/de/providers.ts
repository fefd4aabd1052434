import type { providers as en } from '../en/providers';

export const providers: Record<keyof typeof en, string> = {
  'idp.help':
    'Benutzer melden sich mit dem Identitätsanbieter ihrer Organisation über OpenID Connect oder SAML 2.0 an. Die Anmeldeseite hat für jeden Anbieter eine Schaltfläche.',
  'idp.ownHelp':
    'Die Benutzer Ihrer Organisation melden sich mit deren Identitätsanbieter über OpenID Connect oder SAML 2.0 an: mit „Mit Ihrer Organisation anmelden“ auf der Anmeldeseite.',
  'idp.addOwnOidcHelp':
    'Registrieren Sie dieses Portal zuerst beim Anbieter als Client (Webanwendung), mit der Redirect-URI {redirect}: Er vergibt die Client-ID und das Client-Secret.',
  'idp.addOwnSamlHelp':
    'Die Adressen dieses Dienstes enthalten die ID des Anbieters, die er beim Erstellen erhält. Fragt der Anbieter zuerst danach, tragen Sie dort andere ein, und berichtigen Sie sie danach.',
  'idp.signInAt':
    'Die Benutzer Ihrer Organisation melden sich hier an. Wer anderswo eine Rolle hat, meldet sich mit Passwort oder Passkey an.',
  'idp.signInPage': 'Anmeldeseite',
  'orgSignIn.none':
    '{organization} hat hier keinen Identitätsanbieter. Prüfen Sie den Namen, oder fragen Sie Ihren Administrator.',
  'orgSignIn.help': 'Ihr Name oder ihre ID. Kunden eines Resellers geben beide an: reseller/kunde.',
  'orgSignIn.next': 'Weiter',
  'idp.empty': 'Keine Identitätsanbieter',
  'idp.emptyHelp': 'Bis Sie einen hinzufügen, melden sich Benutzer mit Passwort oder Passkey an.',
  'idp.addOidc': 'OpenID-Connect-Anbieter hinzufügen',
  'idp.addSaml': 'SAML-Anbieter hinzufügen',
  'idp.addOidcHelp':
    'Registrieren Sie dieses Portal zuerst beim Anbieter als Client (Webanwendung): Er vergibt die Client-ID und das Client-Secret. Die Redirect-URI ist die Adresse unten.',
  'idp.addSamlHelp':
    'Die meisten Anbieter fragen zuerst nach den Adressen dieses Dienstes. Sie enthalten den Namen des Anbieters hier: {entityID}',
  'idp.protocol': 'Protokoll',
  'idp.oidc': 'OpenID Connect',
  'idp.saml': 'SAML 2.0',
  'idp.settings': 'Einstellungen',
  'idp.connection': 'Verbindung',
  'idp.test': 'Anmeldung testen',
  'idp.views': 'Ansichten von {name}',
  'idp.gone': 'Identitätsanbieter nicht gefunden',
  'idp.goneHelp': 'Er wurde gelöscht, oder die Adresse ist falsch.',
  'idp.toList': 'Alle Identitätsanbieter',
  'idp.deleteTitle': 'Identitätsanbieter {name} löschen',
  'idp.deleteHelp':
    'Benutzer können sich nicht mehr mit ihm anmelden. Die Benutzer, die er erstellt hat, bleiben; ein neuer Anbieter erkennt sie nicht.',
  'idp.saved': 'Identitätsanbieter gespeichert',
  'idp.nameHelp': 'Wird auf der Anmeldeseite angezeigt.',
  'idp.nameHelpSaml':
    'Wird auf der Anmeldeseite angezeigt. Er ist Teil der Adressen, die der Anbieter kennt: Wenn Sie ihn ändern, ändern sich diese.',
  'idp.issuer': 'Aussteller',
  'idp.issuerHelp':
    'URL genau wie beim Anbieter, ohne /.well-known/openid-configuration. Sie kann später nicht geändert werden.',
  'idp.clientId': 'Client-ID',
  'idp.clientIdHelp': 'Der Anbieter vergibt sie, wenn dieses Portal dort registriert wird.',
  'idp.clientSecret': 'Client-Secret',
  'idp.secretHelp': 'Wird verschlüsselt gespeichert und nie wieder angezeigt.',
  'idp.secretKept': 'Leer lassen, um das gespeicherte zu behalten. Ein neues ersetzt es.',
  'idp.scopes': 'Weitere Scopes',
  'idp.scopesHelp': 'Zusätzlich zu den üblichen, durch Leerzeichen getrennt, z. B. groups.',
  'idp.redirects': 'Adressen des Portals',
  'idp.redirectsHelp':
    'Wohin Browser nach der Anmeldung zurückkehren, eine pro Zeile. Bei einem OpenID-Connect-Anbieter muss jede als Redirect-URI registriert sein.',
  'idp.users': 'Benutzer und Gruppen',
  'idp.organization': 'Organisation',
  'idp.organizationHelp':
    'Ihre Administratoren verwalten die Benutzer, die der Anbieter erstellt, und ordnen Gruppen Rollen zu.',
  'idp.operators': 'Keine: Betreiber verwalten die Benutzer',
  'idp.create': 'Benutzer bei der ersten Anmeldung erstellen',
  'idp.createHelp': 'Für alle, deren Claims eine Rolle oder eine Gruppe geben.',
  'idp.creates': 'Erstellt Benutzer',
  'idp.groupsClaim': 'Gruppen-Claim',
  'idp.groupsClaimHelp':
    'Claim oder SAML-Attribut, dessen Werte bei jeder Anmeldung die Mitglieder von Gruppen bestimmen, z. B. groups. Die Zuordnung erfolgt auf der Seite Gruppen.',
  'idp.grants': 'Rollen nach Claims',
  'idp.grantsHelp':
    'Benutzer haben diese Rollen, solange der Claim oder das SAML-Attribut den Wert hat; sie werden bei jeder Anmeldung aktualisiert.',
  'idp.grantAdd': 'Rolle hinzufügen',
  'idp.claim': 'Claim oder Attribut',
  'idp.value': 'Wert',
  'idp.choose': 'Auswählen …',
  'idp.metadata': 'Metadaten des Anbieters',
  'idp.metadataHelp':
    'Das XML-Dokument, das der Anbieter für Dienstanbieter bereitstellt, höchstens 256 KiB. Entity-ID, Adresse und Zertifikate werden daraus gelesen.',
  'idp.metadataReplace':
    'Leer lassen, um die Einstellungen zu behalten. Neue Metadaten derselben Entität ersetzen Adresse und Zertifikate.',
  'idp.certificates': 'Signaturzertifikate',
  'idp.rotate':
    'Fügen Sie ein neues Zertifikat hier hinzu, bevor der Anbieter damit signiert; entfernen Sie das alte, sobald er es nicht mehr verwendet. Antworten, die mit einem von ihnen signiert sind, werden angenommen.',
  'idp.certificateNumber': 'Zertifikat {n}',
  'idp.certificateRemove': 'Zertifikat {n} entfernen',
  'idp.certificateAdd': 'Zertifikat hinzufügen',
  'idp.certificateHelp': 'Im PEM-Format: RSA mit mindestens 2048 Bit oder ECDSA.',
  'idp.certificateUntil': 'gültig bis {day}',
  'idp.certificateExpired': 'abgelaufen am {day}',
  'idp.certificateUnknown': 'Gültigkeit unbekannt',
  'idp.domains': 'E-Mail-Domains',
  'idp.domainsHelp':
    'Domains, deren Adressen der Anbieter bestätigen darf, eine pro Zeile, z. B. example.com. Subdomains gehören nicht dazu.',
  'idp.nameId': 'NameID-Format',
  'idp.nameIdHelp':
    'Woran der Anbieter einen Benutzer erkennt. Bei E-Mail-Adresse ist derselbe Benutzer, wer später die Adresse hat.',
  'idp.nameId.persistent': 'Persistent',
  'idp.nameId.emailAddress': 'E-Mail-Adresse',
  'idp.emailAttribute': 'E-Mail-Attribut',
  'idp.emailAttributeHelp':
    'Attribut mit der E-Mail-Adresse. Wenn leer, der übliche Name; nicht nötig, wenn die NameID die Adresse ist.',
  'idp.nameAttribute': 'Namensattribut',
  'idp.nameAttributeHelp': 'Attribut mit dem angezeigten Namen. Vorgabe: keines.',
  'idp.baseURL': 'Adresse dieses Dienstes',
  'idp.baseURLHelp':
    'Wie Browser ihn erreichen, z. B. https://cloud.example. Vorgabe: die der ersten Adresse des Portals.',
  'idp.connectOidc': 'Tragen Sie diese Werte dort ein, wo dieses Portal beim Anbieter registriert ist.',
  'idp.connectSaml': 'Importieren Sie die Metadaten beim Anbieter, oder tragen Sie die Werte dort ein.',
  'idp.redirectURI': 'Redirect-URI',
  'idp.grantType': 'Grant-Typ',
  'idp.grantTypeIs': 'Authorization Code mit PKCE (S256)',
  'idp.scopesAsked': 'Angeforderte Scopes',
  'idp.download': 'Metadaten des Dienstanbieters herunterladen',
  'idp.entityID': 'Entity-ID (Audience, Bezeichner)',
  'idp.acsURL': 'ACS-URL (Antwort-URL, Single-Sign-on-URL)',
  'idp.signature': 'Signatur',
  'idp.signatureIs': 'Antwort oder Assertion, RSA oder ECDSA mit SHA-256 oder besser',
  'idp.encryption': 'Verschlüsselung, signierte Anfragen, SLO',
  'idp.encryptionIs': 'Aus',
  'idp.ofProvider': 'Aus den Metadaten des Anbieters',
  'idp.issuerSaml': 'Entity-ID des Anbieters',
  'idp.signOn': 'Single-Sign-on-Adresse',
  'idp.scim': 'Bereitstellung über SCIM',
  'idp.scimHelp':
    'Das Verzeichnis der Organisation kann Benutzer und Gruppen erstellen und deaktivieren. Den Schlüssel dafür erstellt ein Administrator der Organisation unter',
  'idp.testHelp':
    'Sie verlassen das Portal, melden sich beim Anbieter an und kehren hierher zurück. Es wird nichts geändert: Ihre Sitzung bleibt, und kein Benutzer wird erstellt.',
  'idp.testRedirect': 'Fügen Sie zuerst {address} zu den Adressen des Portals hinzu',
  'idp.testBegin': 'Beim Anbieter anmelden',
  'idp.testRefused':
    'Der Anbieter hat abgelehnt, oder seine Antwort war ungültig. War es die Antwort, steht der Grund unter',
  'idp.refusals': 'Abgelehnte Anmeldungen',
  'idp.refusalsHelp':
    'Warum Anmeldungen mit diesem Anbieter in den letzten 24 Stunden abgelehnt wurden. Jeder kann eine Antwort senden, die abgelehnt wird: Nur wo der Anbieter die Person bestätigt hatte, hat es jemand mit einem Konto dort versucht. Jeder Knoten vergisst seine, wenn er neu gestartet wird.',
  'idp.refusalsIncomplete': 'Ein Knoten hat nicht geantwortet: Was nur er abgelehnt hat, fehlt.',
  'idp.refusalsEmpty': 'Keine abgelehnten Anmeldungen',
  'idp.refusalsEmptyHelp':
    'In den letzten 24 Stunden wurde hier keine abgelehnt. Was der Anbieter selbst ablehnt, ist hier nicht bekannt.',
  'idp.refusedAt': 'Zuletzt',
  'idp.refusedReason': 'Grund',
  'idp.refusedWho': 'Person',
  'idp.refusedConfirmed': 'Bestätigt, ohne Adresse',
  'idp.refusedUnknown': 'Nicht bestätigt',
  'idp.refusedCount': 'Anzahl',
  'idp.outcome.sign-in': 'Der Benutzer kann sich anmelden',
  'idp.outcome.create': 'Die Anmeldung würde einen Benutzer erstellen',
  'idp.outcome.refused': 'Die Anmeldung würde abgelehnt',
  'idp.subject': 'Subject',
  'idp.displayName': 'Anzeigename',
  'idp.user': 'Benutzer',
  'idp.claimOf': 'Claim „{name}“',
};
