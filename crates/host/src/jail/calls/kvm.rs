//! What an engine asks the hypervisor for on x86: its own machine and its own processors. Devices
//! of the host, encrypted memory and other machines are not among it.

/// Numbers of the kernel's interface, which never change. The first is most of all calls.
pub(super) const KVM_COMMANDS: &[u32] = &[
    0xae80,      // KVM_RUN
    0x4008_ae61, // KVM_IRQ_LINE
    0xc008_ae67, // KVM_IRQ_LINE_STATUS
    0x4020_aea5, // KVM_SIGNAL_MSI
    0x4004_ae86, // KVM_INTERRUPT
    0xae03,      // KVM_CHECK_EXTENSION
    0xae00,      // KVM_GET_API_VERSION
    0xae01,      // KVM_CREATE_VM
    0xae41,      // KVM_CREATE_VCPU
    0xae04,      // KVM_GET_VCPU_MMAP_SIZE
    0x4068_aea3, // KVM_ENABLE_CAP
    0x4018_aee2, // KVM_GET_DEVICE_ATTR
    0xaece,      // KVM_GET_STATS_FD
    0x4020_ae46, // KVM_SET_USER_MEMORY_REGION
    0x4010_ae42, // KVM_GET_DIRTY_LOG
    0x4040_ae79, // KVM_IOEVENTFD
    0xae47,      // KVM_SET_TSS_ADDR
    0x4008_ae48, // KVM_SET_IDENTITY_MAP_ADDR
    0x4008_ae6a, // KVM_SET_GSI_ROUTING
    0x4188_aec6, // KVM_X86_SET_MSR_FILTER
    0xc008_ae05, // KVM_GET_SUPPORTED_CPUID
    0x4008_ae90, // KVM_SET_CPUID2
    0xc004_ae02, // KVM_GET_MSR_INDEX_LIST
    0xc004_ae0a, // KVM_GET_MSR_FEATURE_INDEX_LIST
    0xc008_ae88, // KVM_GET_MSRS
    0x4008_ae89, // KVM_SET_MSRS
    0x8090_ae81, // KVM_GET_REGS
    0x4090_ae82, // KVM_SET_REGS
    0x8138_ae83, // KVM_GET_SREGS
    0x4138_ae84, // KVM_SET_SREGS
    0x8140_aecc, // KVM_GET_SREGS2
    0x4140_aecd, // KVM_SET_SREGS2
    0x81a0_ae8c, // KVM_GET_FPU
    0x41a0_ae8d, // KVM_SET_FPU
    0x9000_aea4, // KVM_GET_XSAVE
    0x9000_aecf, // KVM_GET_XSAVE2
    0x5000_aea5, // KVM_SET_XSAVE
    0x8188_aea6, // KVM_GET_XCRS
    0x4188_aea7, // KVM_SET_XCRS
    0x8080_aea1, // KVM_GET_DEBUGREGS
    0x4080_aea2, // KVM_SET_DEBUGREGS
    0x8400_ae8e, // KVM_GET_LAPIC
    0x4400_ae8f, // KVM_SET_LAPIC
    0x8004_ae98, // KVM_GET_MP_STATE
    0x4004_ae99, // KVM_SET_MP_STATE
    0x8040_ae9f, // KVM_GET_VCPU_EVENTS
    0x4040_aea0, // KVM_SET_VCPU_EVENTS
    0xc080_aebe, // KVM_GET_NESTED_STATE
    0x4080_aebf, // KVM_SET_NESTED_STATE
    0xaea3,      // KVM_GET_TSC_KHZ
    0xaea2,      // KVM_SET_TSC_KHZ
    0x8030_ae7c, // KVM_GET_CLOCK
    0x4030_ae7b, // KVM_SET_CLOCK
    0xaead,      // KVM_KVMCLOCK_CTRL
    0xc028_ae92, // KVM_TPR_ACCESS_REPORTING
    0x4008_ae93, // KVM_SET_VAPIC_ADDR
    0x8008_ae9d, // KVM_X86_GET_MCE_CAP_SUPPORTED
    0x4008_ae9c, // KVM_X86_SETUP_MCE
    0xae9a,      // KVM_NMI
    0xaeb7,      // KVM_SMI
];
