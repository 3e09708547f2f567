//! Flags of the kube-controller-manager for predictions from manifests: an option for each flag
//! that a scenario file can set.

use clap::error::Error;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use kube_autoscaler_models::flags::Flag;
use kube_lockstep_manifests::{ControllerFlags, FlagFields};

/// The flags that are given.
#[derive(Clone, Debug, Default)]
pub(super) struct ControllerFlagArgs {
    pub(super) flags: ControllerFlags,
}

impl Args for ControllerFlagArgs {
    fn augment_args(command: Command) -> Command {
        let heading = "Flags of the kube-controller-manager, with manifests of HPAs";
        let fields = FlagFields::default();
        command.next_help_heading(heading).args(Flag::ALL.map(|flag| option(flag, &fields)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ControllerFlagArgs::augment_args(command)
    }
}

/// The option of a flag.
fn option(flag: Flag, fields: &FlagFields) -> Arg {
    let option = Arg::new(flag.name())
        .long(flag.name())
        .value_name(if fields.is_number(flag) { "N" } else { "DURATION" })
        .help(fields.description(flag).trim_end_matches('.').to_owned())
        .requires("filename")
        .allow_negative_numbers(true)
        .value_parser(move |value: &str| ControllerFlags::parse(flag, value));
    match flag {
        // As for `cluster start`.
        Flag::SyncPeriod => option.visible_alias("sync-period"),
        _ => option,
    }
}

impl FromArgMatches for ControllerFlagArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ControllerFlagArgs, Error> {
        let mut args = ControllerFlagArgs::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let given = |flag: Flag| matches.get_one::<ControllerFlags>(flag.name()).cloned();
        Flag::ALL.into_iter().filter_map(given).for_each(|flag| self.flags.extend(flag));
        Ok(())
    }
}
