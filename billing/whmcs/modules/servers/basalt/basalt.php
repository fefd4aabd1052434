<?php

/**
 * Basalt for WHMCS: GPU machines and accounts on a Basalt cluster. WHMCS calls each
 * of these functions; docs/billing.md of Basalt describes the set-up.
 *
 * A WHMCS service is basaltd's service INSTALLATION:SERVICEID. Every call may be
 * repeated after a time-out: basaltd returns the same service. Machines are created
 * and deleted in the background; their state is shown, and nothing waits for it.
 */

declare(strict_types=1);

use WHMCS\Module\Server\Basalt\ApiError;
use WHMCS\Module\Server\Basalt\Area;
use WHMCS\Module\Server\Basalt\Client;
use WHMCS\Module\Server\Basalt\Lang;
use WHMCS\Module\Server\Basalt\Lines;
use WHMCS\Module\Server\Basalt\Metrics;
use WHMCS\Module\Server\Basalt\Order;
use WHMCS\Module\Server\Basalt\Properties;
use WHMCS\Module\Server\Basalt\Server;
use WHMCS\Module\Server\Basalt\View;

if (!defined('WHMCS')) {
    die('This file is a part of WHMCS.');
}

require_once __DIR__ . '/lib/load.php';

function basalt_MetaData(): array
{
    return [
        'DisplayName' => 'Basalt GPU cloud',
        'APIVersion' => '1.1',
        'RequiresServer' => true,
        'DefaultNonSSLPort' => '7480',
        'DefaultSSLPort' => '7480',
        'ServiceSingleSignOnLabel' => Lang::text('open_portal'),
        'AdminSingleSignOnLabel' => Lang::text('open_portal'),
        'ListAccountsUniqueIdentifierDisplayName' => 'User name',
        'ListAccountsUniqueIdentifierField' => 'username',
        'ListAccountsProductField' => 'configoption1',
    ];
}

/** In the order of Order::OPTIONS, which must not change, since WHMCS stores values by number. */
function basalt_ConfigOptions(array $params = []): array
{
    return [
        'Type' => ['Type' => 'dropdown', 'Options' => ['machine' => Lang::text('type_machine'), 'account' => Lang::text('type_account')], 'Default' => 'machine', 'SimpleMode' => true,
            'Description' => Lang::text('type_help')],
        'Flavor' => ['Type' => 'text', 'Size' => 25, 'Loader' => 'basalt_FlavorLoader', 'SimpleMode' => true, 'Description' => Lang::text('flavor_help')],
        'Image' => ['Type' => 'text', 'Size' => 25, 'Loader' => 'basalt_ImageLoader', 'SimpleMode' => true, 'Description' => Lang::text('image_help')],
        'GPU pool' => ['Type' => 'text', 'Size' => 25, 'Loader' => 'basalt_PoolLoader', 'SimpleMode' => true, 'Description' => Lang::text('pool_help')],
        'VRAM GiB' => ['Type' => 'text', 'Size' => 5, 'Default' => '0', 'SimpleMode' => true, 'Description' => Lang::text('vram_help')],
        'GPU share' => ['Type' => 'text', 'Size' => 5, 'Default' => '', 'SimpleMode' => true, 'Description' => Lang::text('share_help')],
        'Disk GiB' => ['Type' => 'text', 'Size' => 5, 'Default' => '', 'SimpleMode' => true, 'Description' => Lang::text('disk_help')],
        'Quota' => ['Type' => 'text', 'Size' => 60, 'Default' => '', 'SimpleMode' => true, 'Description' => Lang::text('quota_help')],
        'Price book' => ['Type' => 'text', 'Size' => 25, 'Default' => '', 'SimpleMode' => true, 'Description' => Lang::text('pricebook_help')],
        'Show costs' => ['Type' => 'dropdown', 'Options' => ['no' => Lang::text('no'), 'yes' => Lang::text('yes')], 'Default' => 'no', 'SimpleMode' => true,
            'Description' => Lang::text('costs_help')],
        'Invoice lines' => ['Type' => 'dropdown', 'Options' => ['metrics' => Lang::text('invoice_metrics'), 'machines' => Lang::text('invoice_machines')],
            'Default' => 'metrics', 'SimpleMode' => true, 'Description' => Lang::text('invoice_help')],
    ];
}

/** @return array<string,string> descriptions by name */
function basalt_FlavorLoader(array $params): array
{
    return basalt_names($params, '/v1/flavors', static function (array $o): string {
        $s = (array) ($o['spec'] ?? []);
        return sprintf('%s (%d vCPU, %s GiB)', $o['meta']['name'], $s['vcpus'] ?? 0, round(($s['memoryBytes'] ?? 0) / 1073741824, 2));
    });
}

function basalt_ImageLoader(array $params): array
{
    return basalt_images($params, false);
}

/** @return array<string,string> the public images, or the public media, by name */
function basalt_images(array $params, bool $media): array
{
    return basalt_names($params, '/v1/images', static fn (array $o): string => (string) $o['meta']['name'],
        static fn (array $o): bool => !empty($o['spec']['public']) && (($o['spec']['format'] ?? '') === 'iso') === $media);
}

function basalt_PoolLoader(array $params): array
{
    return ['' => 'default'] + basalt_names($params, '/v1/gpu-pools', static fn (array $o): string => (string) $o['meta']['name']);
}

function basalt_names(array $params, string $path, callable $words, ?callable $choose = null): array
{
    $out = [];
    foreach ((new Client(Server::of($params)))->all('Loader', $path) as $o) {
        if ($choose === null || $choose($o)) {
            $out[(string) $o['meta']['name']] = $words($o);
        }
    }
    return $out;
}

/** Returns the result of a call for WHMCS: "success", or an error message. */
function basalt_said(callable $do): string
{
    try {
        $do();
        return 'success';
    } catch (ApiError $e) {
        return $e->getMessage();
    } catch (\Throwable $e) {
        // Internal errors are not shown on a page; they are in the module log.
        if (function_exists('logModuleCall')) {
            logModuleCall('basalt', 'error', get_class($e), $e->getMessage(), '', []);
        }
        return 'The Basalt module failed: its log (System Logs, Module Log) says why.';
    }
}

function basalt_client(array $params): Client
{
    return new Client(Server::of($params), array_filter([(string) ($params['password'] ?? ''), (string) ($params['serverpassword'] ?? '')]));
}

function basalt_path(array $params, string $verb = ''): string
{
    return '/v1/services/' . rawurlencode(Order::name($params)) . $verb;
}

function basalt_service(array $params): array
{
    return basalt_client($params)->call('GetService', 'GET', basalt_path($params));
}

function basalt_put(array $params, string $action): array
{
    $put = static fn (): array => basalt_client($params)->call($action, 'PUT', basalt_path($params), Order::of($params));
    try {
        return $put();
    } catch (ApiError $e) {
        if ($e->apiCode !== 'unreachable' || $e->status !== 0) {
            throw $e;
        }
        return $put(); // repeat it: it may have taken effect, and then returns the same
    }
}

function basalt_CreateAccount(array $params): string
{
    return basalt_said(static function () use ($params): void {
        $service = basalt_put($params, 'CreateAccount');
        Properties::save($params, ['Username' => Order::username((int) $params['serviceid'])] + View::ip($service));
    });
}

function basalt_ChangePackage(array $params): string
{
    return basalt_said(static fn () => basalt_put($params, 'ChangePackage'));
}

function basalt_SuspendAccount(array $params): string
{
    $reason = mb_strcut(trim((string) preg_replace('/[\x00-\x1f\x7f]+/', ' ', (string) ($params['suspendreason'] ?? ''))), 0, 250);
    return basalt_said(static fn () => basalt_client($params)->call('SuspendAccount', 'POST', basalt_path($params, '/suspend'), ['reason' => $reason]));
}

function basalt_UnsuspendAccount(array $params): string
{
    return basalt_said(static fn () => basalt_client($params)->call('UnsuspendAccount', 'POST', basalt_path($params, '/resume'), null));
}

function basalt_TerminateAccount(array $params): string
{
    return basalt_said(static fn () => basalt_client($params)->call('TerminateAccount', 'DELETE', basalt_path($params)));
}

/** Basalt's services do not expire: a renewed one only has to exist. */
function basalt_Renew(array $params): string
{
    return basalt_said(static function () use ($params): void {
        if (!empty(basalt_service($params)['spec']['terminatedAt'])) {
            throw new ApiError('This service has ended in Basalt: run Create to make it again.', 'wrong_state');
        }
    });
}

/** Sets the client's password for the portal, which is the same for all services. */
function basalt_ChangePassword(array $params): string
{
    return basalt_said(static fn () => basalt_client($params)->call('ChangePassword', 'PUT', basalt_path($params, '/password'), ['password' => (string) $params['password']]));
}

function basalt_TestConnection(array $params): array
{
    $said = basalt_said(static function () use ($params): void {
        $me = basalt_client($params)->call('TestConnection', 'GET', '/v1/whoami');
        if (!in_array($me['role'] ?? '', ['operator', 'reseller'], true)) {
            throw new ApiError('The API key has role ' . ($me['role'] ?? 'none') . ': billing takes a key of role reseller (or operator).', 'forbidden');
        }
        basalt_client($params)->call('TestConnection', 'GET', '/v1/services?limit=1&installation=' . rawurlencode(Server::of($params)->installation));
    });
    return $said === 'success' ? ['success' => true, 'error' => ''] : ['success' => false, 'error' => $said];
}

function basalt_ListAccounts(array $params): array
{
    $accounts = [];
    $said = basalt_said(static function () use ($params, &$accounts): void {
        $server = Server::of($params);
        foreach (basalt_client($params)->all('ListAccounts', '/v1/services', ['installation' => $server->installation]) as $s) {
            $id = substr((string) $s['meta']['name'], strlen($server->installation) + 1);
            if (empty($s['spec']['terminatedAt']) && preg_match('/^[0-9]{1,15}$/', $id)) {
                $accounts[] = View::account($s, Order::username((int) $id));
            }
        }
    });
    return $said === 'success' ? ['success' => true, 'accounts' => $accounts] : ['success' => false, 'error' => $said];
}

function basalt_power(array $params, string $verb, ?array $body = null): string
{
    return basalt_said(static function () use ($params, $verb, $body): void {
        $service = basalt_service($params);
        $instance = (string) ($service['spec']['instance'] ?? '');
        if ($instance === '' || ($service['status']['phase'] ?? '') === 'NoMachine') {
            throw new ApiError('This service has no machine: ' . (($service['status']['reason'] ?? '') ?: 'it is an account, whose machines are in the portal') . '.', 'wrong_state');
        }
        basalt_client($params)->call($verb, 'POST', '/v1/instances/' . rawurlencode($instance) . '/' . $verb, $body);
    });
}

/**
 * Replaces the machine's root disk, from an image that the client chooses. A page
 * asks for a confirmation first: all data on the disk is lost, so the machine's name
 * must be typed.
 */
function basalt_reinstall(array $params): array|string
{
    $machine = '';
    $images = [];
    $said = basalt_said(static function () use ($params, &$machine, &$images): void {
        $machine = (string) (basalt_service($params)['spec']['machine']['name'] ?? '');
        $images = basalt_ImageLoader($params);
    });
    if ($said !== 'success') {
        return $said;
    }
    $typed = $_POST['basalt_confirm'] ?? null;
    $image = $_POST['basalt_image'] ?? null;
    if ($machine !== '' && is_string($typed) && is_string($image) && hash_equals($machine, trim($typed)) && isset($images[$image])) {
        return basalt_power($params, 'reinstall', ['image' => $image]);
    }
    return ['templatefile' => 'templates/reinstall', 'vars' => ['words' => Lang::words(Lang::current()), 'machine' => $machine, 'images' => array_keys($images),
        'wrong' => $typed !== null, 'here' => 'clientarea.php?action=productdetails&id=' . (int) ($params['serviceid'] ?? 0)]];
}

/** Restarts the machine from a medium that the client chooses, or ends that. */
function basalt_rescue(array $params): array|string
{
    $machine = $medium = '';
    $media = [];
    $said = basalt_said(static function () use ($params, &$machine, &$medium, &$media): void {
        $service = basalt_service($params);
        $machine = (string) ($service['spec']['machine']['name'] ?? '');
        $instance = (string) ($service['spec']['instance'] ?? '');
        if ($instance !== '') {
            $medium = (string) (basalt_client($params)->call('rescue', 'GET', '/v1/instances/' . rawurlencode($instance))['spec']['rescue'] ?? '');
        }
        $media = basalt_images($params, true);
    });
    if ($said !== 'success') {
        return $said;
    }
    $chosen = $_POST['basalt_medium'] ?? null;
    if ($medium !== '' && $chosen === '') {
        return basalt_power($params, 'unrescue');
    }
    if ($machine !== '' && is_string($chosen) && isset($media[$chosen])) {
        return basalt_power($params, 'rescue', ['medium' => $chosen]);
    }
    return ['templatefile' => 'templates/rescue', 'vars' => ['words' => Lang::words(Lang::current()), 'machine' => $machine, 'media' => array_keys($media), 'rescued' => $medium !== '',
        'wrong' => $chosen !== null, 'here' => 'clientarea.php?action=productdetails&id=' . (int) ($params['serviceid'] ?? 0)]];
}

function basalt_start(array $params): string
{
    return basalt_power($params, 'start');
}

function basalt_stop(array $params): string
{
    return basalt_power($params, 'stop');
}

function basalt_restart(array $params): string
{
    return basalt_power($params, 'restart');
}

/**
 * Bills the last complete month, with a line for each machine, if the product is set
 * to do so. It can be repeated: billed lines are recognized by their description, and
 * not billed twice.
 */
function basalt_bill(array $params): string
{
    return basalt_said(static function () use ($params): void {
        if (Order::options($params)['invoice'] !== 'machines') {
            throw new ApiError('The product bills metrics: set its "Invoice lines" to "machines" first.', 'settings');
        }
        [$from, $to, $month] = Lines::month(time());
        $service = basalt_service($params);
        $ended = strtotime((string) ($service['spec']['terminatedAt'] ?? ''));
        if ($ended !== false && $ended < $from) {
            return;
        }
        $page = basalt_costs($params, (string) $service['spec']['organization'], $from, $to);
        $lines = Lines::of(Order::username((int) $params['serviceid']), $month, (string) $service['spec']['type'], (string) ($service['spec']['machine']['name'] ?? ''),
            $page['items'], (int) ($page['commitmentMicros'] ?? 0) + (int) ($page['minimumMicros'] ?? 0));
        if ($lines !== []) {
            basalt_billed((int) ($params['userid'] ?? $params['clientsdetails']['userid'] ?? 0), (string) $page['currency'], $lines);
        }
    });
}

/** Returns the costs of each resource in a period, on one page. */
function basalt_costs(array $params, string $organization, int $from, int $to): array
{
    $query = ['organization' => $organization, 'from' => gmdate('Y-m-d\TH:i:s\Z', $from), 'to' => gmdate('Y-m-d\TH:i:s\Z', $to), 'by' => 'resource', 'limit' => '1000'];
    $all = basalt_client($params)->call('Costs', 'GET', '/v1/costs?' . http_build_query($query), null, 60);
    for ($page = $all; ($page['continue'] ?? '') !== '';) {
        $page = basalt_client($params)->call('Costs', 'GET', '/v1/costs?' . http_build_query($query + ['continue' => $page['continue']]), null, 60);
        array_push($all['items'], ...$page['items']);
    }
    return $all;
}

/** @param array<int,array{description:string,cents:int}> $lines */
function basalt_billed(int $client, string $currency, array $lines): void
{
    $details = localAPI('GetClientsDetails', ['clientid' => $client]);
    $theirs = (string) ($details['currency_code'] ?? $details['client']['currency_code'] ?? '');
    if ($theirs !== $currency) {
        throw new ApiError("The client pays in \"$theirs\" and the price book of Basalt is in $currency: give the product a price book in the client's currency.", 'settings');
    }
    foreach ($lines as $line) {
        if (\WHMCS\Database\Capsule::table('tblbillableitems')->where('userid', $client)->where('description', $line['description'])->exists()) {
            continue;
        }
        $answer = localAPI('AddBillableItem', ['clientid' => $client, 'description' => $line['description'], 'amount' => sprintf('%d.%02d', intdiv($line['cents'], 100), $line['cents'] % 100),
            'unit' => 'quantity', 'quantity' => 1, 'invoiceaction' => 'nextcron']);
        if (($answer['result'] ?? '') !== 'success') {
            throw new ApiError('WHMCS took no billable item "' . $line['description'] . '": ' . (string) ($answer['message'] ?? 'no answer'), 'settings');
        }
    }
}

/** Returns the client's page with the link to the console. */
function basalt_console(array $params): array|string
{
    $page = '';
    $said = basalt_said(static function () use ($params, &$page): void {
        $page = View::console(Server::of($params)->portal, basalt_service($params));
    });
    if ($said !== 'success') {
        return $said;
    }
    return ['templatefile' => 'templates/console', 'vars' => [
        'words' => Lang::words(Lang::current()), 'login' => 'clientarea.php?action=productdetails&id=' . (int) $params['serviceid'] . '&dosinglesignon=1', 'console' => $page,
    ]];
}

function basalt_buttons(): array
{
    return [Lang::text('start') => 'start', Lang::text('stop') => 'stop', Lang::text('restart') => 'restart'];
}

function basalt_AdminCustomButtonArray(array $params = []): array
{
    return basalt_buttons() + [Lang::text('bill') => 'bill'];
}

function basalt_ClientAreaCustomButtonArray(array $params = []): array
{
    return ($params['configoption1'] ?? 'machine') === 'account' ? [] : basalt_buttons() + [Lang::text('console') => 'console', Lang::text('rescue') => 'rescue', Lang::text('reinstall') => 'reinstall'];
}

function basalt_ClientAreaAllowedFunctions(array $params = []): array
{
    return ['start', 'stop', 'restart', 'console', 'rescue', 'reinstall'];
}

function basalt_ClientArea(array $params): array
{
    $service = $area = [];
    $id = (int) ($params['serviceid'] ?? 0);
    $said = $id === 0 ? 'no service' : basalt_said(static function () use ($params, &$service, &$area): void {
        $service = basalt_service($params);
        $area = (new Area(basalt_client($params), $service, Server::of($params)->portal, time()))->all(Order::options($params)['costs'] === 'yes');
    });
    return ['tabOverviewReplacementTemplate' => 'templates/clientarea.tpl', 'templateVariables' => [
        'words' => Lang::words(Lang::current()),
        // Clients are not shown errors between WHMCS and basaltd.
        'problem' => $said === 'success' ? '' : Lang::text('no_answer'),
        'basalt' => View::client($service),
        'area' => $area,
        'login' => 'clientarea.php?action=productdetails&id=' . $id . '&dosinglesignon=1',
    ]];
}

function basalt_AdminLink(array $params): string
{
    try {
        $portal = Server::of($params)->portal;
    } catch (ApiError) {
        return '';
    }
    return '<a href="' . View::html($portal) . '" target="_blank" rel="noopener noreferrer">' . View::html(Lang::text('open_portal')) . '</a>';
}

function basalt_LoginLink(array $params): string
{
    return basalt_AdminLink($params);
}

function basalt_AdminServicesTabFields(array $params): array
{
    $service = [];
    $said = basalt_said(static function () use ($params, &$service): void {
        $service = basalt_service($params);
    });
    $quota = View::html(Properties::get($params, Properties::QUOTA));
    return View::admin($said === 'success' ? '' : $said, $service, $said === 'success' ? Server::of($params)->portal : '')
        + [Lang::text('own_quota') => '<input type="text" name="basalt_quota" size="60" class="form-control" value="' . $quota . '"> ' . View::html(Lang::text('own_quota_help'))];
}

function basalt_AdminServicesTabFieldsSave(array $params): void
{
    if (!isset($_REQUEST['basalt_quota']) || !is_string($_REQUEST['basalt_quota'])) {
        return;
    }
    $quota = trim($_REQUEST['basalt_quota']);
    if ($quota === Properties::get($params, Properties::QUOTA)) {
        return;
    }
    basalt_said(static function () use ($params, $quota): void {
        Order::quota($quota); // an invalid quota is not stored
        Properties::save($params, [Properties::QUOTA => $quota]);
    });
}

function basalt_ServiceSingleSignOn(array $params): array
{
    return basalt_signOn($params, static fn (Server $s): string => basalt_path($params, '/login-link'));
}

/** Signs in the user whose e-mail address is the server's user name. */
function basalt_AdminSingleSignOn(array $params): array
{
    return basalt_signOn($params, static function (Server $s): string {
        if ($s->admin === '') {
            throw new ApiError('The server has no user name: set it to the e-mail address of your user in Basalt.', 'settings');
        }
        return '/v1/users/' . rawurlencode($s->admin) . '/login-link';
    });
}

function basalt_signOn(array $params, callable $path): array
{
    $to = '';
    $said = basalt_said(static function () use ($params, $path, &$to): void {
        $server = Server::of($params);
        $link = basalt_client($params)->call('SingleSignOn', 'POST', $path($server));
        $to = $server->portal . '/#/sso?token=' . rawurlencode((string) $link['token']);
    });
    return $said === 'success' ? ['success' => true, 'redirectTo' => $to] : ['success' => false, 'errorMsg' => $said];
}

/** Updates the disk usage of each service in WHMCS's own columns; charges come from the metrics. */
function basalt_UsageUpdate(array $params): void
{
    basalt_said(static function () use ($params): void {
        $server = Server::of($params);
        $client = basalt_client($params);
        $until = microtime(true) + 60;
        foreach ($client->all('UsageUpdate', '/v1/services', ['installation' => $server->installation]) as $s) {
            $id = substr((string) $s['meta']['name'], strlen($server->installation) + 1);
            if (!empty($s['spec']['terminatedAt']) || !preg_match('/^[0-9]{1,15}$/', $id) || microtime(true) > $until) {
                continue;
            }
            $quota = $client->call('UsageUpdate', 'GET', '/v1/organizations/' . rawurlencode((string) $s['spec']['organization']) . '/quota');
            $mib = static fn (string $of): int => intdiv((int) ($quota[$of]['volumeBytes'] ?? 0), 1 << 20);
            \WHMCS\Database\Capsule::table('tblhosting')->where('server', $params['serverid'])->where('id', (int) $id)->update([
                'diskusage' => $mib('uses'), 'disklimit' => $mib('limits'), 'lastupdate' => date('Y-m-d H:i:s'),
            ]);
        }
    });
}

function basalt_MetricProvider(array $params): Metrics
{
    return new Metrics($params);
}
