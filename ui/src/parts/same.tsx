// What a form sends, for those who would rather type it: hidden until asked for.
import { ExpandableSection } from '@patternfly/react-core';
import { useText } from '../i18n';
import { Copyable } from './copyable';

/** cli is left out where there is no command. */
export function Same({ cli, curl }: { cli?: string; curl: string }) {
  const { t } = useText();
  return (
    <ExpandableSection toggleText={t('new.same')}>
      <div className="basalt-stack" data-same>
        <p className="basalt-note">{t('new.sameHelp')}</p>
        {cli && <Copyable label={t('new.cli')} text={cli} />}
        <Copyable label={t('new.curl')} text={curl} />
      </div>
    </ExpandableSection>
  );
}
