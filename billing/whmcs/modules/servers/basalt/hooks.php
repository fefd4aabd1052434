<?php

/** Basalt for WHMCS: the hooks that WHMCS calls after changes. */

declare(strict_types=1);

use WHMCS\Module\Server\Basalt\Hooks;

if (!defined('WHMCS')) {
    die('This file is a part of WHMCS.');
}

require_once __DIR__ . '/lib/load.php';

add_hook('ClientEdit', 1, static fn (array $vars) => Hooks::clientEdit($vars));
add_hook('ProductEdit', 1, static fn (array $vars) => Hooks::productEdit($vars));
add_hook('ServiceEdit', 1, static fn (array $vars) => Hooks::serviceEdit($vars));
add_hook('DailyCronJob', 1, static fn (array $vars) => Hooks::daily());
