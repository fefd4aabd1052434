import type { groups as en } from '../en/groups';

export const groups: Record<keyof typeof en, string> = {
  'grp.help':
    'Mitglieder einer Gruppe haben deren Rollen zusätzlich zu ihren eigenen. Ein Verzeichnis (Okta, Entra ID) kann Benutzer und Gruppen über SCIM erstellen; Sie bestimmen, welche Rollen seine Gruppen haben.',
  'grp.empty': 'Keine Gruppen',
  'grp.emptyHelp':
    'Legen Sie eine an, um mehreren Benutzern dieselben Rollen zu geben, oder verbinden Sie Ihr Verzeichnis.',
  'grp.create': 'Gruppe erstellen',
  'grp.edit': 'Gruppe bearbeiten',
  'grp.displayName': 'Anzeigename',
  'grp.roles': 'Rollen',
  'grp.members': 'Mitglieder',
  'grp.membersHelp': 'E-Mail-Adressen von Benutzern der Organisation, eine pro Zeile.',
  'grp.membersElsewhere':
    'Die Mitglieder kommen aus dem Verzeichnis oder vom Identitätsanbieter und können hier nicht geändert werden.',
  'grp.membersOf': 'Mitglieder von {name}',
  'grp.membersOfHelp':
    'Sie haben die Rollen der Gruppe ab der nächsten Anmeldung. Wenn Sie jemanden entfernen, enden dessen Sitzungen mit diesen Rollen sofort.',
  'grp.noMembers': 'Keine Mitglieder',
  'grp.addMembers': 'Mitglieder hinzufügen',
  'grp.removeMember': 'Mitglied entfernen: {name}',
  'grp.externalId': 'Wert des Gruppen-Claims',
  'grp.externalIdHelp':
    'Benutzer, deren Gruppen-Claim oder -Attribut diesen Wert enthält, sind Mitglieder, von Anmeldung zu Anmeldung. Vorgabe: der Name der Gruppe.',
  'grp.sourceProvider': 'Identitätsanbieter {name}',
  'grp.providerHelp':
    'Ein Identitätsanbieter muss zu dieser Organisation gehören: Das legt ein Betreiber fest. Später nicht änderbar.',
  'grp.source': 'Mitglieder bestimmt durch',
  'grp.source.local': 'Administratoren',
  'grp.source.identity-provider': 'Identitätsanbieter',
  'grp.source.scim': 'Verzeichnis',
  'grp.addRole': 'Rolle hinzufügen',
  'grp.removeRole': 'Rolle entfernen: {role}',
  'grp.deleteHelp': 'Die Mitglieder verlieren ihre Rollen, und Sitzungen mit diesen Rollen enden sofort.',
  'grp.connect': 'Verzeichnis verbinden',
  'grp.connectHelp':
    'Legt einen API-Schlüssel an, der nur SCIM erlaubt. Tragen Sie ihn mit der Adresse unten in den Bereitstellungs-Einstellungen Ihres Verzeichnisses ein.',
  'grp.connected': 'Schlüssel {name} ist bereit',
  'grp.secretHelp': 'Kopieren Sie ihn jetzt: Er wird nicht noch einmal angezeigt.',
  'grp.url': 'SCIM-Adresse',
  'grp.key': 'Schlüssel',
  'grp.days': 'Gültig für Tage',
};
