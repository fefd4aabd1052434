import { Divider, Dropdown, DropdownGroup, DropdownItem, DropdownList, MenuToggle } from '@patternfly/react-core';
import { UserIcon } from '@patternfly/react-icons';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok } from '../api/client';
import { signedOut, type Session } from '../api/session';
import { languages, useText, type Language } from '../i18n';
import { chooseTheme, theme, themes, type Theme } from '../lib/theme';

export function UserMenu({ session }: { session: Session }) {
  const { t, language, choose } = useText();
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  const [shown, setShown] = useState<Theme>(theme);
  const name = session.name ?? session.key;
  const speak = (l: Language) => {
    choose(l);
    // The portal is in this language whether mail is or not.
    if (session.user) void ok(api.PUT('/v1/language', { body: { language: l } })).catch(() => undefined);
  };
  const signOut = async () => {
    await signedOut(client); // first, so that the pages send no more requests
    // The cookie is deleted whatever the response is.
    await ok(api.POST('/v1/logout')).catch(() => undefined);
  };
  return (
    <Dropdown
      isOpen={open}
      onOpenChange={setOpen}
      popperProps={{ position: 'end', appendTo: 'inline' }}
      toggle={(ref) => (
        <MenuToggle
          ref={ref}
          variant="plainText"
          icon={<UserIcon />}
          isExpanded={open}
          aria-label={t('app.user', { name })}
          onClick={() => setOpen(!open)}
        >
          <span className="basalt-live-text">{name}</span>
        </MenuToggle>
      )}
    >
      <DropdownGroup labelHeadingLevel="h2" label={t(`role.${session.role}`)}>
        <DropdownList>
          <DropdownItem key="account" to="#/account">
            {t('acc.open')}
          </DropdownItem>
          <DropdownItem key="out" onClick={() => void signOut()} description={name}>
            {t('app.signOut')}
          </DropdownItem>
        </DropdownList>
      </DropdownGroup>
      <Divider />
      <DropdownGroup labelHeadingLevel="h2" label={t('app.theme')}>
        <DropdownList>
          {themes.map((x) => (
            <DropdownItem key={x} isSelected={x === shown} onClick={() => (chooseTheme(x), setShown(x))}>
              {t(`app.theme.${x}`)}
            </DropdownItem>
          ))}
        </DropdownList>
      </DropdownGroup>
      <Divider />
      <DropdownGroup labelHeadingLevel="h2" label={t('app.language')}>
        <DropdownList>
          {(Object.keys(languages) as Language[]).map((l) => (
            <DropdownItem key={l} lang={l} isSelected={l === language} onClick={() => speak(l)}>
              {languages[l]}
            </DropdownItem>
          ))}
        </DropdownList>
      </DropdownGroup>
    </Dropdown>
  );
}
